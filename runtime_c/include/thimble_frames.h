/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of samples cut into frames and joined again: TensorFlow Lite Micro's signal library, bit for bit.
 * What a run leaves for the next is in `state`, which is updated. */
#ifndef THIMBLE_FRAMES_H
#define THIMBLE_FRAMES_H

#include <stdint.h>

/** `rows` streams, each `delay` samples late: `size` samples of each, `delay` in the state. */
void thimble_delay_s16(
    const int16_t *input, int32_t rows, int32_t size, int32_t delay, int16_t *state, int16_t *output);

/** `rows` streams, of which a run brings `frames` times `step` samples. A frame has `size` of them. The state
 *  has room for `capacity`: `size`, rounded up to a multiple of `step`. */
typedef struct {
    int32_t rows;
    int32_t frames;
    int32_t size;
    int32_t step;
    int32_t capacity;
} thimble_frame_params;

/** Frames of a stream, each `step` samples after the one before. `held`: samples in the state, the same of
 * all rows. While there are too few for one of the frames, `valid` and all frames are 0. */
void thimble_frame_s16(const thimble_frame_params *params,
                       const int16_t *input,
                       int16_t *state,
                       int32_t *held,
                       int16_t *output,
                       uint8_t *valid);

/** Frames of `channels` values are stacked to `size` values, which then lose their first `step`. The very
 * first frame counts `before` times more. */
typedef struct {
    int32_t channels;
    int32_t before;
    int32_t size;
    int32_t step;
} thimble_stack_params;

/** The state has room for `size` values, of which it holds `held`: -1 before the first frame. While it holds
 * too few, `valid` is 0 and so is the output. */
void thimble_stack_s16(const thimble_stack_params *params,
                       const int16_t *input,
                       int16_t *state,
                       int32_t *held,
                       int16_t *output,
                       uint8_t *valid);

/** `rows` streams, each of `frames` frames of `size` samples, of which `step` are new. */
typedef struct {
    int32_t rows;
    int32_t frames;
    int32_t size;
    int32_t step;
} thimble_overlap_params;

/** Frames joined to a stream, where they overlap added; int16 is clamped. The state has `size` samples a row.
 */
void thimble_overlap_add_s16(const thimble_overlap_params *params,
                             const int16_t *input,
                             int16_t *state,
                             int16_t *output);
void thimble_overlap_add_f32(const thimble_overlap_params *params,
                             const float *input,
                             float *state,
                             float *output);

#endif
