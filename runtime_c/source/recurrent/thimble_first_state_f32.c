/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_recurrent_f32.h"

#include <stddef.h>

void thimble_first_state_f32(const float *initial, float *state, int32_t units)
{
    for (int32_t i = 0; i < units; i++) {
        state[i] = initial == NULL ? 0.0f : initial[i];
    }
}
