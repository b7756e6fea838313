/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"

/* From 2^23 on all floats are integers. */
float thimble_floor_f32(float x)
{
    if (!(x > -8388608.0f && x < 8388608.0f)) {
        return x;
    }
    const float whole = (float)(int32_t)x;
    const float below = whole > x ? whole - 1.0f : whole;
    return below == 0.0f ? x * 0.0f : below; /* -0 stays -0 */
}
