/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_frames.h"

#include <string.h>

void thimble_overlap_add_f32(const thimble_overlap_params *params,
                             const float *input,
                             float *state,
                             float *output)
{
    const thimble_overlap_params p = *params;
    const int32_t rest = p.size - p.step;

    for (int32_t row = 0; row < p.rows; row++, state += p.size) {
        for (int32_t frame = 0; frame < p.frames; frame++, output += p.step) {
            for (int32_t i = 0; i < p.size; i++) {
                state[i] += *input++;
            }
            (void)memcpy(output, state, (size_t)p.step * sizeof(*state));
            (void)memmove(state, state + p.step, (size_t)rest * sizeof(*state));
            (void)memset(state + rest, 0, (size_t)p.step * sizeof(*state));
        }
    }
}
