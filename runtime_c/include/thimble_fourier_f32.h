/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms of float32. Each operation is rounded once, in one order, so that every core gives the
 * same bits. Complex numbers are pairs: real, imaginary.
 */
#ifndef THIMBLE_FOURIER_F32_H
#define THIMBLE_FOURIER_F32_H

#include <stdint.h>

/** A transform of `length` complex numbers, a power of 2.
 *  `order[length]`  where number i goes, for the passes to leave all in order.
 *  `twiddles`       exp(-2 pi i k / length), for k below 3/4 length. */
typedef struct {
    int32_t length;
    const int16_t *order;
    const float *twiddles;
} thimble_fourier_f32;

/** The transform in place of numbers in the plan's order. */
void thimble_fourier_passes_f32(const thimble_fourier_f32 *plan, float *data);

/** A transform of real samples, taken as pairs: numbers of half the length, a power of 2.
 *  `halves`  exp(-pi i (k / length + 1/2)), for k from 1 to length / 2 of the pairs' length. */
typedef struct {
    thimble_fourier_f32 pairs;
    const float *halves;
} thimble_rfft_f32_plan;

/** The transform of `count` samples, and zeros behind them, to `pairs.length` + 1 numbers. */
void thimble_rfft_f32(const thimble_rfft_f32_plan *rfft, const float *input, int32_t count, float *output);

/** `rows` times the samples of such numbers, in the operations of KissFFT. */
void thimble_irfft_f32(const thimble_rfft_f32_plan *rfft, const float *input, int32_t rows, float *output);

/** The transforms of `slices` images [input_h][input_w], cut or filled up with zeros to height times width,
 *  powers of 2. `columns`: of length height. */
typedef struct {
    int32_t slices;
    int32_t input_h;
    int32_t input_w;
    int32_t height;
    int32_t width;
    thimble_rfft_f32_plan rows;
    thimble_fourier_f32 columns;
} thimble_rfft2d_f32_params;

/** What is kept of the numbers [slices][height][width / 2 + 1] (TFLite RFFT2D, COMPLEX_ABS, REAL and IMAG);
 * NULL for what is not. `work`: scratch of (height * (width / 2 + 1) + height) pairs, of a height of 1 one
 * pair less. An image is read before the first of its numbers is written. */
void thimble_rfft2d_f32(const thimble_rfft2d_f32_params *params,
                        const float *input,
                        float *magnitude,
                        float *real,
                        float *imaginary,
                        float *work);

#endif
