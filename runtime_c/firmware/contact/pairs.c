/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of instructions, each 64 times in a row: what the core's timing table says of them is put to the
 * test. */
#include "contact.h"

#define PAIR(name, first, second)                                                                            \
    static void contact_pair_##name(void) __attribute__((naked, aligned(64)));                               \
    static void contact_pair_##name(void)                                                                    \
    {                                                                                                        \
        __asm volatile(".syntax unified\n\t"                                                                 \
                       "sub sp, #16\n\t"                                                                     \
                       ".rept 64\n\t" first "\n\t" second "\n\t"                                             \
                       ".endr\n\t"                                                                           \
                       "add sp, #16\n\t"                                                                     \
                       "bx lr");                                                                             \
    }

PAIR(add_add, "adds r0, #1", "adds r1, #1")
PAIR(add_chain, "adds r0, #1", "adds r0, #1")
PAIR(mul_use, "muls r0, r1", "adds r2, r2, r0")
PAIR(load_load, "ldr r0, [sp]", "ldr r1, [sp, #4]")
PAIR(load_use, "ldr r0, [sp]", "adds r1, r1, r0")
PAIR(store_load, "str r0, [sp]", "ldr r1, [sp, #4]")
#ifndef __ARM_ARCH_6M__
PAIR(mac_chain, "mla r0, r1, r2, r0", "mla r0, r1, r2, r0")
PAIR(load_mac, "ldr r1, [sp]", "mla r0, r1, r2, r0")
#endif
#ifdef __ARM_FEATURE_DSP
PAIR(dual_macs, "smlad r0, r1, r2, r0", "smlad r3, r1, r2, r3")
#endif
#ifdef __ARM_FP
PAIR(float_use, "vmul.f32 s0, s1, s2", "vadd.f32 s3, s3, s0")
PAIR(float_macs, "vfma.f32 s0, s1, s2", "vfma.f32 s3, s1, s2")
#endif

/* By their symbols the host knows which is which. */
typedef void (*pair)(void);
static const pair contact_pairs[] = {
    contact_pair_add_add,   contact_pair_add_chain,  contact_pair_mul_use,
    contact_pair_load_load, contact_pair_load_use,   contact_pair_store_load,
#ifndef __ARM_ARCH_6M__
    contact_pair_mac_chain, contact_pair_load_mac,
#endif
#ifdef __ARM_FEATURE_DSP
    contact_pair_dual_macs,
#endif
#ifdef __ARM_FP
    contact_pair_float_use, contact_pair_float_macs,
#endif
};

static void nothing(void) __attribute__((naked, aligned(64)));

static void nothing(void)
{
    __asm volatile(".syntax unified\n\t"
                   "sub sp, #16\n\t"
                   "add sp, #16\n\t"
                   "bx lr");
}

/* The ticks of the second of two calls: caches hold the code then. The same code for each function. */
static thimble_count timed(pair function) __attribute__((noinline, noclone));

static thimble_count timed(pair function)
{
    function();
    const thimble_count start = thimble_counter();
    function();
    return thimble_counter() - start;
}

/* Takes a number. Answers the ticks of that pair, 64 times, without those of a call. */
void contact_pair(const uint32_t *words, uint32_t *answer)
{
    const uint32_t count = (uint32_t)(sizeof contact_pairs / sizeof contact_pairs[0]);

    if (words[0] < count) {
        const thimble_count call = timed(nothing);
        contact_put_ticks(answer, timed(contact_pairs[words[0]]) - call);
    }
}
