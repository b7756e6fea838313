/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_frames.h"

#include <string.h>

void thimble_overlap_add_s16(const thimble_overlap_params *params,
                             const int16_t *input,
                             int16_t *state,
                             int16_t *output)
{
    const thimble_overlap_params p = *params;
    const int32_t rest = p.size - p.step;

    for (int32_t row = 0; row < p.rows; row++, state += p.size) {
        for (int32_t frame = 0; frame < p.frames; frame++, output += p.step) {
            for (int32_t i = 0; i < p.size; i++) {
                const int32_t sum = state[i] + *input++;

                state[i] = (int16_t)(sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum);
            }
            (void)memcpy(output, state, (size_t)p.step * sizeof(*state));
            (void)memmove(state, state + p.step, (size_t)rest * sizeof(*state));
            (void)memset(state + rest, 0, (size_t)p.step * sizeof(*state));
        }
    }
}
