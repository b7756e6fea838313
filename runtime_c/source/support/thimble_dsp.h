/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of Armv7E-M on pairs of int16, with portable equivalents.
 *
 * Words hold four int8 values, lowest address in the lowest byte, or two int16 values.
 */
#ifndef THIMBLE_DSP_H
#define THIMBLE_DSP_H

#include <stdint.h>
#include <string.h>

#if defined(__ARM_FEATURE_DSP) && (__ARM_FEATURE_DSP == 1)
#define THIMBLE_DSP 1
#else
#define THIMBLE_DSP 0
#endif

/* Whether the core converts and multiplies float32 itself, one rounding an operation. */
#if defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4)
#define THIMBLE_FPU 1
#else
#define THIMBLE_FPU 0
#endif

/* Armv6-M reads words that are aligned. */
static inline uint32_t thimble_read_word(const void *at)
{
    uint32_t word;
#ifdef __ARM_ARCH_6M__
    if (((uintptr_t)at & 3U) == 0) {
        (void)memcpy(&word, __builtin_assume_aligned(at, 4), 4);
        return word;
    }
#endif
    (void)memcpy(&word, at, 4);
    return word;
}

/* Inner loops in assembly need every register but sp: they are functions of their own, without a frame
 * pointer. Compilers that do not optimise take the portable C; so does -DTHIMBLE_NO_ASM, which
 * -fno-omit-frame-pointer needs. */
#if THIMBLE_DSP && defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__) &&                      \
    !defined(THIMBLE_NO_ASM)
#define THIMBLE_ASM 1
#define THIMBLE_ASM_FUNCTION __attribute__((noinline, optimize("omit-frame-pointer")))
#define THIMBLE_ASM_INLINE __attribute__((always_inline, optimize("omit-frame-pointer")))
#else
#define THIMBLE_ASM 0
#define THIMBLE_ASM_FUNCTION
#define THIMBLE_ASM_INLINE
#endif

/* Whether the core issues two instructions at a time, as a Cortex-M7 does. Compilers do not name the core:
 * among those of Armv7E-M only it has double precision; without that, say -DTHIMBLE_DUAL_ISSUE=1. */
#if !defined(THIMBLE_DUAL_ISSUE)
#if defined(__ARM_ARCH_7EM__) && defined(__ARM_FP) && (__ARM_FP & 8)
#define THIMBLE_DUAL_ISSUE 1
#else
#define THIMBLE_DUAL_ISSUE 0
#endif
#endif

/* Two int16 values that lie in memory as such, read as one aligned word. */
typedef uint32_t __attribute__((may_alias)) thimble_pair;

/* Bytes 0 and 2 of a word as two int16. */
static inline uint32_t thimble_sxtb16(uint32_t word)
{
#if THIMBLE_DSP
    uint32_t result;
    __asm("sxtb16 %0, %1" : "=r"(result) : "r"(word));
    return result;
#else
    const uint32_t low = (uint32_t)(int32_t)(int8_t)(uint8_t)word;
    const uint32_t high = (uint32_t)(int32_t)(int8_t)(uint8_t)(word >> 16);
    return (low & 0xFFFFU) | (high << 16);
#endif
}

/* Bytes 1 and 3 of a word as two int16. */
static inline uint32_t thimble_sxtb16_ror8(uint32_t word)
{
#if THIMBLE_DSP
    uint32_t result;
    __asm("sxtb16 %0, %1, ror #8" : "=r"(result) : "r"(word));
    return result;
#else
    return thimble_sxtb16((word >> 8) | (word << 24));
#endif
}

/* Two int16 of `pair`, plus bytes 0 and 2 of a word. */
static inline uint32_t thimble_sxtab16(uint32_t pair, uint32_t word)
{
#if THIMBLE_DSP
    uint32_t result;
    __asm("sxtab16 %0, %1, %2" : "=r"(result) : "r"(pair), "r"(word));
    return result;
#else
    const uint32_t bytes = thimble_sxtb16(word);
    return ((pair + bytes) & 0xFFFFU) | ((pair & 0xFFFF0000U) + (bytes & 0xFFFF0000U));
#endif
}

/* Bottom halves of two words, and top halves: the first one's lowest. */
static inline uint32_t thimble_bottoms(uint32_t low, uint32_t high)
{
#if THIMBLE_DSP
    uint32_t result;
    __asm("pkhbt %0, %1, %2, lsl #16" : "=r"(result) : "r"(low), "r"(high));
    return result;
#else
    return (low & 0xFFFFU) | (high << 16);
#endif
}

static inline uint32_t thimble_tops(uint32_t low, uint32_t high)
{
#if THIMBLE_DSP
    uint32_t result;
    __asm("pkhtb %0, %1, %2, asr #16" : "=r"(result) : "r"(high), "r"(low));
    return result;
#else
    return (low >> 16) | (high & 0xFFFF0000U);
#endif
}

static inline int32_t thimble_bottom(uint32_t pair)
{
    return (int16_t)(uint16_t)pair;
}

static inline int32_t thimble_top(uint32_t pair)
{
    return (int16_t)(uint16_t)(pair >> 16);
}

/* a.bottom - b.bottom and a.top - b.top */
static inline uint32_t thimble_ssub16(uint32_t a, uint32_t b)
{
#if THIMBLE_DSP
    uint32_t result;
    __asm("ssub16 %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
    return result;
#else
    return ((a - b) & 0xFFFFU) | (((a >> 16) - (b >> 16)) << 16);
#endif
}

/* a.bottom + b.bottom and a.top + b.top */
static inline uint32_t thimble_sadd16(uint32_t a, uint32_t b)
{
#if THIMBLE_DSP
    uint32_t result;
    __asm("sadd16 %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
    return result;
#else
    return ((a + b) & 0xFFFFU) | (((a >> 16) + (b >> 16)) << 16);
#endif
}

/* Sums wrap as registers do. */
static inline int32_t thimble_add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* Products of sums wrap, too. */
static inline int32_t thimble_multiply(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a * (uint32_t)b);
}

/* sum + a.bottom * b.bottom + a.top * b.top */
static inline int32_t thimble_smlad(uint32_t a, uint32_t b, int32_t sum)
{
#if THIMBLE_DSP
    int32_t result;
    __asm("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
#else
    return thimble_add(sum, thimble_bottom(a) * thimble_bottom(b) + thimble_top(a) * thimble_top(b));
#endif
}

/* The same with a sum of 64 bits. */
static inline int64_t thimble_smlald(uint32_t a, uint32_t b, int64_t sum)
{
#if THIMBLE_DSP
    uint32_t low = (uint32_t)sum;
    uint32_t high = (uint32_t)((uint64_t)sum >> 32);
    __asm("smlald %0, %1, %2, %3" : "+r"(low), "+r"(high) : "r"(a), "r"(b));
    return (int64_t)(((uint64_t)high << 32) | low);
#else
    return sum + (int64_t)thimble_bottom(a) * thimble_bottom(b) + (int64_t)thimble_top(a) * thimble_top(b);
#endif
}

/* sum + a.bottom * b.top */
static inline int32_t thimble_smlabt(uint32_t a, uint32_t b, int32_t sum)
{
#if THIMBLE_DSP
    int32_t result;
    __asm("smlabt %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
#else
    return thimble_add(sum, thimble_bottom(a) * thimble_top(b));
#endif
}

/* sum + a.top * b.bottom */
static inline int32_t thimble_smlatb(uint32_t a, uint32_t b, int32_t sum)
{
#if THIMBLE_DSP
    int32_t result;
    __asm("smlatb %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
#else
    return thimble_add(sum, thimble_top(a) * thimble_bottom(b));
#endif
}

#endif
