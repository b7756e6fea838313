/* SPDX-License-Identifier: Apache-2.0 */
/* Reset: the vector table, the FPU, .data and .bss, the painted stack; then the service loop. */
#include "thimble_board.h"
#include "thimble_cortex_m.h"
#include "thimble_firmware.h"

#include <stddef.h>
#include <string.h>

#define CPACR_FPU (0xFu << 20) /* coprocessors 10 and 11, full access (Arm DDI 0403 B3.2.20) */

/* From the linker script. */
typedef struct {
    const uint8_t *from;
    uint8_t *to;
    uint32_t size_bytes;
} thimble_copy;
extern const thimble_copy thimble_copies[]; /* .data, and what is read sooner from RAM */
extern const thimble_copy thimble_copies_end[];
extern uint8_t thimble_bss_start[];
extern uint8_t thimble_bss_end[];
extern const uint32_t thimble_vectors[16 + THIMBLE_UART_IRQ + 1];

/* Alignment that SCB_VTOR takes (Arm DDI 0403 B3.2.5): the table of a chip with more than 112 interrupts is
 * of 256 words. */
#define VECTORS_ALIGNMENT (THIMBLE_UART_IRQ < 112u ? 512 : 1024)

/* The sixteen system exceptions: the stack's end, reset, NMI, HardFault, MemManage, BusFault, UsageFault,
 * SecureFault; then interrupts up to the only one that is ever enabled. */
const uint32_t thimble_vectors[16 + THIMBLE_UART_IRQ + 1]
    __attribute__((section(".vectors"), aligned(VECTORS_ALIGNMENT), used)) = {
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
/* Returns from the exception that runs, to the start of the firmware, in thread mode and on this stack. */
static void leave_exception(void) __attribute__((naked, noreturn));

static void leave_exception(void)
{
    __asm volatile(".syntax unified\n\t"
                   "sub sp, #32\n\t" /* r0-r3, r12, lr, pc, psr */
                   "movs r1, #1\n\t"
                   "ldr r0, =thimble_reset\n\t"
                   "bics r0, r1\n\t"
                   "lsls r1, r1, #24\n\t"
                   "str r0, [sp, #24]\n\t"
                   "str r1, [sp, #28]\n\t"
                   "movs r0, #6\n\t"
                   "mvns r0, r0\n\t"
                   "bx r0\n\t"
                   ".ltorg");
}

/* A boot loader may start the firmware from within an interrupt, whose priority would keep the UART's out. */
static void settle_mode(void)
{
    uint32_t exception;
    __asm volatile("mrs %0, ipsr" : "=r"(exception));
    if (exception != 0) {
        leave_exception();
    }
}
#else
static void settle_mode(void)
{
}
#endif

#ifdef THIMBLE_EXTERNAL
static int32_t external_init(uint32_t *identity)
{
    return thimble_external_init(identity);
}

static int32_t is_beside(const uint8_t *from)
{
    return (uint32_t)from >> THIMBLE_EXTERNAL_SIZE_LOG2 ==
           THIMBLE_EXTERNAL_ORIGIN >> THIMBLE_EXTERNAL_SIZE_LOG2;
}
#else
static int32_t external_init(uint32_t *identity)
{
    (void)identity;
    return 0;
}

static int32_t is_beside(const uint8_t *from)
{
    (void)from;
    return 0;
}
#endif

void thimble_reset(void)
{
    /* A ROM boot loader starts the firmware without a reset: nothing is taken as a reset leaves it. */
#ifdef __ARM_ARCH_6M__
    __asm volatile("cpsid i" ::: "memory");
#else
    __asm volatile("cpsid i\n\tmsr basepri, %0\n\tcpsie f" ::"r"(0) : "memory");
#endif
    settle_mode();
    THIMBLE_REGISTER(SCB_VTOR) = (uint32_t)thimble_vectors;
#ifndef __ARM_ARCH_6M__
    THIMBLE_REGISTER(SCB_CPACR) |= CPACR_FPU;
#endif
    thimble_barrier();
    thimble_core_settle();
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
    __asm volatile("msr msplim, %0" ::"r"(thimble_stack_low));
#elif !defined(THIMBLE_NO_MPU)
    /* The stack begins at the bottom of its bank. Some buses ignore what is written below. */
    thimble_mpu_guard((uint32_t)thimble_stack_low - (1u << THIMBLE_GUARD_LOG2), THIMBLE_GUARD_LOG2);
#endif
    thimble_board_init();
    uint32_t identity = 0;
    const int32_t beside = external_init(&identity);
    for (const thimble_copy *copy = thimble_copies; copy != thimble_copies_end; copy++) {
        if (beside == 0 || is_beside(copy->from) == 0) {
            (void)memcpy(copy->to, copy->from, copy->size_bytes);
        }
    }
    thimble_barrier(); /* what was copied may be code */
    /* cppcheck-suppress [comparePointers]: both are ends of one section. */
    (void)memset(thimble_bss_start, 0, (size_t)(thimble_bss_end - thimble_bss_start));
#ifdef THIMBLE_BESIDE
    thimble_beside_check(beside, identity);
#endif
    thimble_memory_paint();
    for (uint32_t i = 0; i < thimble_model_count; i++) {
        if (beside == 0 && thimble_models[i].prepare != NULL) {
            (void)thimble_models[i].prepare(); /* a run says what was wrong */
        }
        thimble_state_reset(&thimble_models[i]);
    }
    thimble_uart_init();
#ifdef THIMBLE_WAITS_END
    if (beside == 0 && thimble_fault.magic == THIMBLE_START_WAITS) {
        thimble_fault_mark(0); /* of an earlier start */
    }
#endif
    thimble_serve();
}

#ifdef THIMBLE_LOADED
#define RESET_NOW() start_again()

/* A reset of the chip would lose the image, which a debug probe has loaded into RAM. The start-up takes
 * nothing as a reset leaves it: it runs again. From a fault the way to thread mode is a return from the
 * exception, on a frame of r0-r3, r12, lr, pc, psr, to Secure code on the main stack (Arm DDI 0553 B3.21,
 * EXC_RETURN). */
__attribute__((naked, noreturn)) static void start_again(void)
{
    __asm volatile(".syntax unified\n\t"
                   "cpsid i\n\t"
                   "ldr r0, =thimble_stack_high\n\t"
                   "ldr r1, =thimble_reset\n\t"
                   "mrs r2, ipsr\n\t"
                   "msr msp, r0\n\t"
                   "cbnz r2, 1f\n\t"
                   "bx r1\n"
                   "1:\n\t"
                   "sub sp, #32\n\t"
                   "bic r1, r1, #1\n\t"
                   "mov r2, #0x01000000\n\t" /* Thumb */
                   "str r1, [sp, #24]\n\t"
                   "str r2, [sp, #28]\n\t"
                   "mvn r0, #6\n\t" /* 0xFFFFFFF9 */
                   "bx r0\n\t"
                   ".ltorg");
}
#else
#define RESET_NOW()                                                                                          \
    (THIMBLE_REGISTER(SCB_AIRCR) = (0x5FAu << SCB_AIRCR_VECTKEY_Pos) | SCB_AIRCR_SYSRESETREQ_Msk)
#endif

void thimble_system_reset(void)
{
#ifdef THIMBLE_CACHES
    thimble_cache_clean();
#endif
    thimble_barrier();
    RESET_NOW();
    for (;;) {
        thimble_barrier();
    }
}
