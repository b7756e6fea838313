/* SPDX-License-Identifier: Apache-2.0 */
/* Armv7E-M SIMD and fixed-point steps shared by the convolution kernels, with portable equivalents.
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

/* How sums become int8. Each channel has a multiplier (Q0.31) and an int8 shift code:
 *
 * code >= 0: right shift by code + 1 after the multiplication. The toolchain has proved that no sum of this
 * channel reaches 2^30 in magnitude. code < 0:  TFLite's left shift (negative: right) is code + 64, and sums
 * may be anything.
 */
#define THIMBLE_SHIFT_BIAS 64
/* A code that no shift of TFLite's has: the multiplier is the bits of a float, and sum * multiplier is
 * rounded as ONNX Runtime does it, to float and then halves to even. Convolutions only. */
#define THIMBLE_SHIFT_FLOAT (-1)

typedef struct {
    int32_t output_offset;
    int32_t activation_min;
    int32_t activation_max;
} thimble_requant;

static inline uint32_t thimble_read_word(const void *at)
{
    uint32_t word;
    memcpy(&word, at, 4);
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

/* Sums wrap as registers do. */
static inline int32_t thimble_add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
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

static inline int32_t thimble_clamp(int32_t value, int32_t low, int32_t high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* TFLite's MultiplyByQuantizedMultiplier (double rounding) and output offset, saturated to int8. Takes twice
 * the sum.
 *
 * round(2 * sum * multiplier / 2^32) is one SMMLAR. Halves of the right shift round away from zero:
 * x + 2^(s-1) - (x < 0) shifted down by s = shift + 1. The output offset rides along as offset * 2^s, so
 * `rounding` is (2 * offset + 1) * 2^shift. Where sum < 0 but x = 0 the extra -1 changes nothing, as s >= 1.
 */
static inline int32_t
thimble_requantize_doubled(int32_t doubled, int32_t multiplier, int32_t shift, int32_t rounding)
{
#if THIMBLE_DSP
    int32_t result;
    __asm("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(doubled), "r"(multiplier), "r"(rounding));
    result = (result + (doubled >> 31)) >> shift;
    __asm("ssat %0, #8, %1, asr #1" : "=r"(result) : "r"(result));
    return result;
#else
    const int64_t product = (int64_t)doubled * multiplier;
    const int32_t high = (int32_t)((product + ((int64_t)1 << 31)) >> 32) + rounding;
    return thimble_clamp((high + (doubled >> 31)) >> shift >> 1, -128, 127);
#endif
}

static inline int32_t
thimble_requantize_fast(int32_t sum, int32_t multiplier, int32_t shift, int32_t rounding)
{
    return thimble_requantize_doubled(sum * 2, multiplier, shift, rounding);
}

/* round(sum * multiplier / 2^(32 + shift)) and output offset, saturated to int8: one rounding, halves up. The
 * toolchain picks multipliers with which this is LiteRT's rounding in double precision. */
static inline int32_t
thimble_requantize_once_fast(int32_t sum, int32_t multiplier, int32_t shift, int32_t rounding)
{
#if THIMBLE_DSP
    int32_t result;
    __asm("smmla %0, %1, %2, %3" : "=r"(result) : "r"(sum * 2), "r"(multiplier), "r"(rounding));
    result >>= shift;
    __asm("ssat %0, #8, %1, asr #1" : "=r"(result) : "r"(result));
    return result;
#else
    const int32_t high = (int32_t)(((int64_t)(sum * 2) * multiplier) >> 32) + rounding;
    return thimble_clamp(high >> shift >> 1, -128, 127);
#endif
}

/* `rounding` argument of thimble_requantize_fast. */
static inline int32_t thimble_rounding(const thimble_requant *requant, int32_t shift)
{
    return (int32_t)((uint32_t)(2 * requant->output_offset + 1) << shift);
}

/* Whether the activation is narrower than int8's own range. */
static inline int32_t thimble_narrow(const thimble_requant *requant)
{
    return requant->activation_min > -128 || requant->activation_max < 127;
}

/* One sum to int8 with any shift code: TFLite's MultiplyByQuantizedMultiplier, output offset and activation.
 */
int8_t thimble_requantize_s8(int32_t sum, int32_t multiplier, int32_t code, const thimble_requant *requant);

/* The same with one rounding, of sum * (multiplier + low / 2^22) / 2^(31 - left shift); low is 0 for codes >=
 * 0. */
int8_t thimble_requantize_once_s8(
    int32_t sum, int32_t multiplier, int32_t low, int32_t code, const thimble_requant *requant);

#endif
