/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_frames.h"

#include <string.h>

void thimble_stack_s16(const thimble_stack_params *params,
                       const int16_t *input,
                       int16_t *state,
                       int32_t *held,
                       int16_t *output,
                       uint8_t *valid)
{
    const thimble_stack_params p = *params;
    const size_t width = sizeof(*state);
    int32_t times = 1;

    if (*held < 0) {
        *held = 0;
        times += p.before;
    }
    for (int32_t i = 0; i < times; i++, *held += p.channels) {
        (void)memcpy(state + *held, input, (size_t)p.channels * width);
    }
    *valid = *held >= p.size;
    if (*held >= p.size) {
        (void)memcpy(output, state, (size_t)p.size * width);
        *held -= p.step;
        (void)memmove(state, state + p.step, (size_t)*held * width);
    } else {
        (void)memset(output, 0, (size_t)p.size * width);
    }
}
