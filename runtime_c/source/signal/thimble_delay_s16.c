/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_frames.h"

#include <string.h>

void thimble_delay_s16(
    const int16_t *input, int32_t rows, int32_t size, int32_t delay, int16_t *state, int16_t *output)
{
    const int32_t old = delay < size ? delay : size;
    const int32_t kept = delay - old;

    for (int32_t row = 0; row < rows; row++, input += size, output += size, state += delay) {
        (void)memcpy(output, state, (size_t)old * sizeof(*state));
        (void)memcpy(output + old, input, (size_t)(size - old) * sizeof(*state));
        (void)memmove(state, state + old, (size_t)kept * sizeof(*state));
        (void)memcpy(state + kept, input + size - old, (size_t)old * sizeof(*state));
    }
}
