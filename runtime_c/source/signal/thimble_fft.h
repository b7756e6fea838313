/* SPDX-License-Identifier: Apache-2.0 */
/* Passes of the Fourier transform, and KissFFT's rounding of int16: products of 15 bits are rounded to
 * nearest, halves up, and every sum wraps. */
#ifndef THIMBLE_FFT_H
#define THIMBLE_FFT_H

#include "thimble_signal.h"

#define THIMBLE_FFT_HALF 16383   /* 32767 / 2, for a pass that adds two numbers */
#define THIMBLE_FFT_QUARTER 8191 /* 32767 / 4 */

/** value * factor / 2^15, rounded. */
static inline int32_t thimble_fft_round(int32_t product)
{
    return (int16_t)((product + (1 << 14)) >> 15);
}

/** Pairs of numbers 1 apart, without factors. */
void thimble_fft_radix_2_s16(int16_t *data, int32_t length);

/** Fours of numbers `apart` numbers apart, in all `length` numbers; `step` is from one of their twiddles to
 * the next. */
void thimble_fft_radix_4_s16(
    int16_t *data, int32_t length, int32_t apart, int32_t step, const int16_t *twiddles);

/** All passes, over `length / 2` numbers in the plan's order. */
void thimble_fft_passes_s16(const thimble_rfft *rfft, int16_t *data);

/** The transform of pairs of real samples, seen as complex numbers, to that of the samples: `length` numbers
 *  become `length` + 1. */
void thimble_fft_real_s16(int16_t *data, int32_t length, const int16_t *halves);

/** The transform in place: pairs of samples in the plan's order to `length / 2 + 1` complex numbers. */
void thimble_rfft_in_place_s16(const thimble_rfft *rfft, int16_t *data);

#endif
