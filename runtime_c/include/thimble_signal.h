/* SPDX-License-Identifier: Apache-2.0 */
/* Sound to features: the fixed-point arithmetic of TensorFlow Lite Micro's signal library and micro front
 * end, with KissFFT's rounding, bit for bit. */
#ifndef THIMBLE_SIGNAL_H
#define THIMBLE_SIGNAL_H

#include <stdint.h>

/** A Fourier transform of `length` real samples: a power of 2, at least 4. Complex numbers are pairs: real,
 *  imaginary.
 *  `order[length / 2]`  where pair i of the samples goes, for the passes to leave all in order.
 *  `twiddles`  exp(-2 pi i k / (length / 2)) as int16, for k below 3/8 length.
 *  `halves`    exp(-pi i ((k + 1) / (length / 2) + 1/2)), for k below length / 4. */
typedef struct {
    int32_t length;
    const int16_t *order;
    const int16_t *twiddles;
    const int16_t *halves;
} thimble_rfft;

/** Triangular filters over energies. Filter i takes `widths[i]` energies from `starts[i]`, by weights from
 *  `weight_starts[i]`: `weights` to its own sum, `unweights` to the next one's. There is a filter before the
 *  first channel, of which only the unweights count. */
typedef struct {
    int32_t channels;
    const int16_t *starts;
    const int16_t *weight_starts;
    const int16_t *widths;
    const int16_t *weights;
    const int16_t *unweights;
} thimble_filter_bank;

/** Noise is a running mean of each channel: `smoothing` of the new value and `rest` of the old, in units of
 *  2^-`bits`; index 0 for even channels, 1 for odd ones. `floor` of the signal is always left. `scale_bits`:
 * the estimate has so many more bits than the signal. `clamping`: it never exceeds the signal. */
typedef struct {
    int32_t smoothing[2];
    int32_t rest[2];
    int32_t floor;
    int32_t bits;
    int32_t scale_bits;
    int32_t clamping;
} thimble_noise;

/** TFLM's micro front end: one frame of `window` samples to `channels` features.
 *  `first`, `end`: the energies that are computed. `gain[125]`: the table of gain control, NULL for none. */
typedef struct {
    int32_t window;
    const int16_t *weights;
    thimble_rfft rfft;
    int32_t first;
    int32_t end;
    thimble_filter_bank bank;
    thimble_noise noise;
    const int16_t *gain;
    int32_t snr_shift;
    int32_t log_scale;
    int32_t correction_bits;
} thimble_features;

/** Each sample times its weight, shifted right and clamped: `count` times `size` of them. */
void thimble_window_s16(const int16_t *input,
                        const int16_t *weights,
                        int32_t size,
                        int32_t count,
                        int32_t shift,
                        int16_t *output);

/** All samples shifted left by as many bits as the largest has room for; `bits` is how many. */
void thimble_auto_scale_s16(const int16_t *input, int32_t size, int16_t *output, int32_t *bits);

/** The transform of `count` samples and as many zeros as it lacks: `length / 2 + 1` complex numbers. */
void thimble_rfft_s16(const thimble_rfft *rfft, const int16_t *input, int32_t count, int16_t *output);

/** `rows` times the `length` samples of `length / 2 + 1` complex numbers. */
void thimble_irfft_s16(const thimble_rfft *rfft, const int16_t *input, int32_t rows, int16_t *output);

/** Squared magnitudes of the complex numbers from `first` to before `end`; the others of `count` become 0. */
void thimble_energies_s16(
    const int16_t *spectrum, int32_t first, int32_t end, int32_t count, uint32_t *energy);

/** The sum of each channel. */
void thimble_filter_bank_u32(const thimble_filter_bank *bank, const uint32_t *energy, uint64_t *sums);

/** Square roots, rounded to nearest, shifted right by `*shift`. */
void thimble_scaled_roots_u64(const uint64_t *sums, int32_t count, const int32_t *shift, uint32_t *roots);

/** A signal less its noise, whose estimate is first made to follow it; `estimates` gets a copy of that. The
 * output may be the input, the copy the estimate. */
void thimble_subtract_noise_u32(const thimble_noise *params,
                                int32_t channels,
                                const uint32_t *signal,
                                uint32_t *noise,
                                uint32_t *output,
                                uint32_t *estimates);

/** Per-channel automatic gain control by a table over the noise. The output may be the input. */
void thimble_pcan_u32(const int16_t *gain,
                      int32_t snr_shift,
                      int32_t channels,
                      const uint32_t *noise,
                      const uint32_t *signal,
                      uint32_t *output);

/** `scale` times the natural logarithm of each value times 2^`correction_bits`; 0 for values below 2. */
void thimble_logs_u32(
    const uint32_t *signal, int32_t count, int32_t scale, int32_t correction_bits, int16_t *logs);

/** One frame. `noise[channels]` is kept from frame to frame, zero before the first. `spectrum` has
 *  `length + 2` values, or more where a filter's last weights, which are 0, lie beyond. `sums[channels]` is
 * for work; `features[channels]` the result. */
void thimble_features_s16(const thimble_features *features,
                          const int16_t *samples,
                          uint32_t *noise,
                          uint32_t *spectrum,
                          uint64_t *sums,
                          int16_t *output);

#endif
