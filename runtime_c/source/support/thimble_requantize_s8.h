/* SPDX-License-Identifier: Apache-2.0 */
/* One int32 sum to int8. */
#ifndef THIMBLE_REQUANTIZE_S8_H
#define THIMBLE_REQUANTIZE_S8_H

#include "thimble_dsp.h"
#include "thimble_requant.h"

static inline int32_t thimble_clamp_sum(int32_t value, int32_t low, int32_t high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* a * b / 2^32 rounded down, after `half` is added: 0, or 2^31 to round halves up. Armv6-M multiplies to 32
 * bits alone, and libgcc's product of 64 by 64 bits takes thrice the time of four products of halves. */
static inline int32_t thimble_upper_product(int32_t a, int32_t b, uint32_t half)
{
#ifdef __ARM_ARCH_6M__
    const int32_t a_high = a >> 16, b_high = b >> 16;
    const uint32_t a_low = (uint32_t)a & 0xFFFFU, b_low = (uint32_t)b & 0xFFFFU;
    const int32_t one = a_high * (int32_t)b_low, other = (int32_t)a_low * b_high;
    const uint32_t lows = ((a_low * b_low) >> 16) + (half >> 16);
    const uint32_t middle = ((uint32_t)one & 0xFFFFU) + ((uint32_t)other & 0xFFFFU) + lows;
    return a_high * b_high + (one >> 16) + (other >> 16) + (int32_t)(middle >> 16);
#else
    return (int32_t)(((int64_t)a * b + half) >> 32);
#endif
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
    const int32_t high = thimble_upper_product(doubled, multiplier, (uint32_t)1 << 31) + rounding;
    return thimble_clamp_sum((high + (doubled >> 31)) >> shift >> 1, -128, 127);
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
    const int32_t high = thimble_upper_product(sum * 2, multiplier, 0) + rounding;
    return thimble_clamp_sum(high >> shift >> 1, -128, 127);
#endif
}

/* floor((sum * multiplier / 2^32 + rounding) / 2^(shift + 1)), saturated to int8 (THIMBLE_SHIFT_ONCE). */
static inline int32_t
thimble_requantize_merged_fast(int32_t sum, int32_t multiplier, int32_t shift, int32_t rounding)
{
#if THIMBLE_DSP
    int32_t result;
    __asm("smmla %0, %1, %2, %3" : "=r"(result) : "r"(sum), "r"(multiplier), "r"(rounding));
    result >>= shift;
    __asm("ssat %0, #8, %1, asr #1" : "=r"(result) : "r"(result));
    return result;
#else
    const int32_t high = thimble_upper_product(sum, multiplier, 0) + rounding;
    return thimble_clamp_sum(high >> shift >> 1, -128, 127);
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

/* One sum to int8 by what follows the filters of a pair of channels (thimble_convolve_s8), for channel `lane`
 * of the pair. */
static inline int8_t
thimble_requantize_lane_s8(int32_t sum, const int32_t *scaling, int32_t lane, const thimble_requant *requant)
{
    const int32_t codes = scaling[2];
    const int32_t code = lane ? codes >> 16 : (int32_t)(int16_t)(uint16_t)(uint32_t)codes;
    if (code >= THIMBLE_SHIFT_ONCE) {
        return (int8_t)thimble_requantize_merged_fast(sum, scaling[lane], code - THIMBLE_SHIFT_ONCE,
                                                      scaling[3 + lane]);
    }
    return thimble_requantize_s8(sum, scaling[lane], code, requant);
}

/* The same with one rounding, of sum * (multiplier + low / 2^22) / 2^(31 - left shift); low is 0 for codes >=
 * 0. */
int8_t thimble_requantize_once_s8(
    int32_t sum, int32_t multiplier, int32_t low, int32_t code, const thimble_requant *requant);

#endif
