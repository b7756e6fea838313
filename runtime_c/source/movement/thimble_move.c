/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_dsp.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>

static void ascend(uint8_t *to, const uint8_t *from, int32_t left)
{
    for (; left >= 32; left -= 32, from += 32, to += 32) {
        const uint8x16_t first = vldrbq_u8(from), second = vldrbq_u8(from + 16);
        vstrbq_u8(to, first);
        vstrbq_u8(to + 16, second);
    }
    for (; left > 0; left -= 16, from += 16, to += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)left);
        vstrbq_p_u8(to, vldrbq_z_u8(from, lanes), lanes);
    }
}

static void descend(uint8_t *to, const uint8_t *from, int32_t left)
{
    for (; left >= 32; left -= 32) {
        const uint8x16_t first = vldrbq_u8(from + left - 16), second = vldrbq_u8(from + left - 32);
        vstrbq_u8(to + left - 16, first);
        vstrbq_u8(to + left - 32, second);
    }
    if (left >= 16) {
        left -= 16;
        vstrbq_u8(to + left, vldrbq_u8(from + left));
    }
    if (left > 0) {
        const mve_pred16_t lanes = vctp8q((uint32_t)left);
        vstrbq_p_u8(to, vldrbq_z_u8(from, lanes), lanes);
    }
}
#elif THIMBLE_ASM
static void put_word(uint8_t *to, uint32_t word)
{
    (void)memcpy(to, &word, 4);
}

/* Whole words: eight at a time where both ends are aligned. */
THIMBLE_ASM_FUNCTION static void ascend(uint8_t *to, const uint8_t *from, int32_t left)
{
    int32_t eights = left >> 5;
    if (eights > 0 && (((uintptr_t)to | (uintptr_t)from) & 3U) == 0) {
        left &= 31;
        __asm volatile("1:                                                \n"
                       "ldmia   %[from]!, {r4, r5, r6, r8, r9, r10, r11, r12} \n"
                       "subs    %[n], %[n], #1                            \n"
                       "stmia   %[to]!, {r4, r5, r6, r8, r9, r10, r11, r12} \n"
                       "bne     1b                                        \n"
                       : [from] "+r"(from), [to] "+r"(to), [n] "+r"(eights)
                       :
                       : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
    }
    for (; left >= 16; left -= 16, from += 16, to += 16) {
        const uint32_t a = thimble_read_word(from), b = thimble_read_word(from + 4);
        const uint32_t c = thimble_read_word(from + 8), d = thimble_read_word(from + 12);
        put_word(to, a);
        put_word(to + 4, b);
        put_word(to + 8, c);
        put_word(to + 12, d);
    }
    for (; left >= 4; left -= 4, from += 4, to += 4) {
        put_word(to, thimble_read_word(from));
    }
    for (; left > 0; left--) {
        *to++ = *from++;
    }
}

THIMBLE_ASM_FUNCTION static void descend(uint8_t *to, const uint8_t *from, int32_t left)
{
    to += left;
    from += left;
    int32_t eights = left >> 5;
    if (eights > 0 && (((uintptr_t)to | (uintptr_t)from) & 3U) == 0) {
        left &= 31;
        __asm volatile("1:                                                \n"
                       "ldmdb   %[from]!, {r4, r5, r6, r8, r9, r10, r11, r12} \n"
                       "subs    %[n], %[n], #1                            \n"
                       "stmdb   %[to]!, {r4, r5, r6, r8, r9, r10, r11, r12} \n"
                       "bne     1b                                        \n"
                       : [from] "+r"(from), [to] "+r"(to), [n] "+r"(eights)
                       :
                       : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
    }
    for (; left >= 16; left -= 16) {
        from -= 16;
        to -= 16;
        const uint32_t a = thimble_read_word(from), b = thimble_read_word(from + 4);
        const uint32_t c = thimble_read_word(from + 8), d = thimble_read_word(from + 12);
        put_word(to + 12, d);
        put_word(to + 8, c);
        put_word(to + 4, b);
        put_word(to, a);
    }
    for (; left >= 4; left -= 4) {
        from -= 4;
        to -= 4;
        put_word(to, thimble_read_word(from));
    }
    for (; left > 0; left--) {
        *--to = *--from;
    }
}
#endif

void thimble_move(void *target, const void *source, int32_t size_bytes)
{
#if defined(__ARM_FEATURE_MVE) || THIMBLE_ASM
    if ((uintptr_t)target <= (uintptr_t)source) {
        ascend(target, source, size_bytes);
    } else {
        descend(target, source, size_bytes);
    }
#else
    (void)memmove(target, source, (size_t)size_bytes);
#endif
}
