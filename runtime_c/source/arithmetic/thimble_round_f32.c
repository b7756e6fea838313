/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"

float thimble_round_f32(float x)
{
    const float below = thimble_floor_f32(x);
    const float rest = x - below;
    const float half = below * 0.5f;

    if (rest > 0.5f || (rest == 0.5f && half != thimble_floor_f32(half))) {
        return below + 1.0f;
    }
    return below;
}
