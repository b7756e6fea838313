/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: record the registers where a reset does not reach them, tell the host, start anew. */
#include "thimble_cortex_m.h"
#include "thimble_firmware.h"

#ifdef THIMBLE_PROFILE
#include "thimble_hooks.h"
#endif

thimble_fault_record thimble_fault __attribute__((section(".noinit")));

/* CFSR: MSTKERR, MLSPERR, STKERR, LSPERR, STKOF: the hardware could not save the registers. */
#define STACKING_ERRORS 0x00103030u

/* `words`: r0-r3, r12, lr, pc, psr as the exception saved them, then sp, EXC_RETURN, IPSR, CFSR,
 * HFSR, MMFAR, BFAR, the running operator, the lowest address of the stack, 0. */
static void record(const uint32_t *saved, uint32_t exc_return) __attribute__((noreturn, used));

static void record(const uint32_t *saved, uint32_t exc_return)
{
    uint32_t *words = thimble_fault.words;
    const uint32_t cfsr = THIMBLE_SCB_CFSR;
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
    words[12] = THIMBLE_SCB_HFSR;
    words[13] = THIMBLE_SCB_MMFAR;
    words[14] = THIMBLE_SCB_BFAR;
#ifdef THIMBLE_PROFILE
    words[15] = thimble_operator_running - 1u;
#else
    words[15] = THIMBLE_NO_OPERATOR;
#endif
    words[16] = (uint32_t)low;
    words[17] = 0;
    thimble_fault.magic = THIMBLE_FAULT_MAGIC;
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
                   "b %c0\n\t"
                   ".ltorg"
                   :
                   : "i"(record));
}
