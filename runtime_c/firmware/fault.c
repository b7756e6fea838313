/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: record the registers where a reset does not reach them, tell the host, start anew. */
#include "thimble_cortex_m.h"
#include "thimble_firmware.h"

#ifdef THIMBLE_PROFILE
#include "thimble_hooks.h"
#endif

thimble_fault_record thimble_fault __attribute__((section(".noinit"), aligned(8)));

#ifdef __ARM_ARCH_6M__
/* No register of Armv6-M tells the cause of a HardFault, the only fault (Arm DDI 0419 B3.2.2). */
#define STACKING_ERRORS 0u
#define FAULT_STATUS(name) 0u
#else
/* The hardware could not save the registers, or not yet those of an FPU; STKOF is of Armv8-M (Arm DDI 0553
 * D1.2.42). */
#define STKOF (1u << 20)
#ifdef __ARM_ARCH_7M__
#define STACKING_ERRORS (SCB_CFSR_MSTKERR_Msk | SCB_CFSR_STKERR_Msk)
#else
#define STACKING_ERRORS                                                                                      \
    (SCB_CFSR_MSTKERR_Msk | SCB_CFSR_MLSPERR_Msk | SCB_CFSR_STKERR_Msk | SCB_CFSR_LSPERR_Msk | STKOF)
#endif
#define FAULT_STATUS(name) THIMBLE_REGISTER(SCB_##name)
#endif

/* The AXI SRAM of an STM32H7 keeps the last piece of a 64-bit word that was written to itself, and a reset
 * loses it, until a piece of another one is written (ST AN5342; "FAQ: STM32H7 SRAM content is not
 * preserved"). */
void thimble_fault_mark(uint32_t magic)
{
    *(volatile uint32_t *)&thimble_fault.magic = magic;
    thimble_barrier();
    *(volatile uint32_t *)&thimble_fault.past = 0;
    thimble_barrier();
}

void thimble_fault_forget(void)
{
    for (uint32_t i = 0; i < sizeof thimble_fault.words / sizeof thimble_fault.words[0]; i++) {
        *(volatile uint32_t *)&thimble_fault.words[i] = 0;
    }
    thimble_fault_mark(0);
}

/* `words`: r0-r3, r12, lr, pc, psr as the exception saved them, then sp, EXC_RETURN, IPSR, CFSR,
 * HFSR, MMFAR, BFAR, the running operator, the lowest address of the stack, 0. */
static void record(const uint32_t *saved, uint32_t exc_return) __attribute__((noreturn, used));

static void record(const uint32_t *saved, uint32_t exc_return)
{
    uint32_t *words = thimble_fault.words;
    const uint32_t cfsr = FAULT_STATUS(CFSR);
    const uintptr_t low = (uintptr_t)thimble_stack_low;
    const uintptr_t high = (uintptr_t)thimble_stack_high;
    const uintptr_t sp = (uintptr_t)saved;
    const int32_t readable = (cfsr & STACKING_ERRORS) == 0 && sp >= low && sp + 32u <= high;
    for (uint32_t i = 0; i < 8u; i++) {
        words[i] = readable ? saved[i] : 0u;
    }
    words[8] = (uint32_t)sp;
    words[9] = exc_return;
    __asm volatile("mrs %0, ipsr" : "=r"(words[10]));
    words[11] = cfsr;
    words[12] = FAULT_STATUS(HFSR);
    words[13] = FAULT_STATUS(MMFAR);
    words[14] = FAULT_STATUS(BFAR);
#ifdef THIMBLE_PROFILE
    words[15] = thimble_operator_running - 1u;
#else
    words[15] = THIMBLE_NO_OPERATOR;
#endif
    words[16] = (uint32_t)low;
    words[17] = 0;
    thimble_fault_mark(THIMBLE_FAULT_MAGIC);
    thimble_serve_fault();
    thimble_system_reset();
}

/* The stack may be what broke: the report runs on a fresh one. */
__attribute__((naked)) void thimble_fault_entry(void)
{
    __asm volatile("mov r0, sp\n\t"
                   "mov r1, lr\n\t"
                   "ldr r2, =thimble_stack_high\n\t"
                   "mov sp, r2\n\t"
                   "ldr r2, =%c0\n\t"
                   "bx r2\n\t"
                   ".ltorg"
                   :
                   : "i"(record));
}
