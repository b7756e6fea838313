/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_frames.h"

#include <string.h>

void thimble_frame_s16(const thimble_frame_params *params,
                       const int16_t *input,
                       int16_t *state,
                       int32_t *held,
                       int16_t *output,
                       uint8_t *valid)
{
    const thimble_frame_params p = *params;
    const int32_t before = *held;
    const size_t width = sizeof(*state);
    int16_t *frame = output;

    *valid = 1;
    for (int32_t row = 0; row < p.rows; row++, state += p.capacity) {
        *held = before;
        for (int32_t i = 0; i < p.frames; i++, input += p.step, frame += p.size) {
            (void)memcpy(state + *held, input, (size_t)p.step * width);
            *held += p.step;
            if (*held >= p.size) {
                (void)memcpy(frame, state, (size_t)p.size * width);
                *held -= p.step;
                (void)memmove(state, state + p.step, (size_t)*held * width);
            } else {
                *valid = 0;
            }
        }
    }
    if (!*valid) {
        (void)memset(output, 0, (size_t)(p.rows * p.frames * p.size) * width);
    }
}
