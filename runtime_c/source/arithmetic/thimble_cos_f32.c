/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_angle.h"
#include "thimble_exact_float.h"
#include "thimble_f32.h"

THIMBLE_EXACT_FLOAT float thimble_cos_f32(float x)
{
    uint32_t quarters = 0u;
    float r = x;

    if (!(x >= -3.402823466e38f && x <= 3.402823466e38f)) {
        return x - x;
    }
    if (x > 0.7853981634f || x < -0.7853981634f) {
        r = thimble_angle_f32(x, &quarters);
    }
    quarters += 1u;
    const float value = (quarters & 1u) != 0u ? thimble_near_cosine_f32(r) : thimble_near_sine_f32(r);
    return (quarters & 2u) != 0u ? 0.0f - value : value;
}
