/* SPDX-License-Identifier: Apache-2.0 */
/* Reset: the vector table, the FPU, .data and .bss, the painted stack; then the service loop. */
#include "thimble_board.h"
#include "thimble_cortex_m.h"
#include "thimble_firmware.h"

#include <string.h>

/* From the linker script. */
extern uint8_t thimble_data_start[];
extern uint8_t thimble_data_end[];
extern const uint8_t thimble_data_load[];
extern uint8_t thimble_bss_start[];
extern uint8_t thimble_bss_end[];
extern const uint32_t thimble_vectors[16 + THIMBLE_UART_IRQ + 1];

/* The sixteen system exceptions: the stack's end, reset, NMI, HardFault, MemManage, BusFault, UsageFault,
 * SecureFault; then interrupts up to the only one that is ever enabled. */
const uint32_t thimble_vectors[16 + THIMBLE_UART_IRQ + 1]
    __attribute__((section(".vectors"), aligned(512), used)) = {
        [0] = (uint32_t)thimble_stack_high,
        [1] = (uint32_t)&thimble_reset,
        [2] = (uint32_t)&thimble_fault_entry,
        [3] = (uint32_t)&thimble_fault_entry,
        [4] = (uint32_t)&thimble_fault_entry,
        [5] = (uint32_t)&thimble_fault_entry,
        [6] = (uint32_t)&thimble_fault_entry,
        [7] = (uint32_t)&thimble_fault_entry,
        [16 + THIMBLE_UART_IRQ] = (uint32_t)&thimble_uart_interrupt,
};

#if !defined(__ARM_ARCH_8M_MAIN__) && !defined(__ARM_ARCH_8_1M_MAIN__)
/* The stack begins at the bottom of its bank. Some buses ignore what is written below, so that the
 * MPU has to refuse it: region 0, the 32 KB before the stack, no access. Off in fault handlers. */
static void guard_stack(void)
{
    THIMBLE_MPU_RNR = 0;
    THIMBLE_MPU_RBAR = (uint32_t)thimble_stack_low - 0x8000u;
    THIMBLE_MPU_RASR = THIMBLE_MPU_RASR_XN | THIMBLE_MPU_RASR_32_KB | THIMBLE_MPU_RASR_ENABLE;
    THIMBLE_MPU_CTRL = THIMBLE_MPU_CTRL_PRIVDEFENA | THIMBLE_MPU_CTRL_ENABLE;
    thimble_barrier();
}
#endif

void thimble_reset(void)
{
    __asm volatile("cpsid i" ::: "memory");
    THIMBLE_SCB_VTOR = (uint32_t)thimble_vectors;
    THIMBLE_SCB_CPACR |= THIMBLE_SCB_CPACR_FPU;
    thimble_barrier();
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
    __asm volatile("msr msplim, %0" ::"r"(thimble_stack_low));
#else
    guard_stack();
#endif
    thimble_board_init();
    memcpy(thimble_data_start, thimble_data_load, (size_t)(thimble_data_end - thimble_data_start));
    memset(thimble_bss_start, 0, (size_t)(thimble_bss_end - thimble_bss_start));
    thimble_memory_paint();
    for (uint32_t i = 0; i < thimble_model_count; i++) {
        thimble_state_reset(&thimble_models[i]);
    }
    thimble_uart_init();
    thimble_serve();
}

void thimble_system_reset(void)
{
    thimble_barrier();
    THIMBLE_SCB_AIRCR = THIMBLE_SCB_AIRCR_SYSRESETREQ;
    for (;;) {
        thimble_barrier();
    }
}
