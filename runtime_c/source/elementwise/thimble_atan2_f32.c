/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;

    (void)memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* The angle of a slope from 0 to 1: above tan(pi / 8) as pi / 4 and what is left, by a series. */
static THIMBLE_EXACT_FLOAT float angle(float slope)
{
    const uint32_t steep = slope > 0.4142135624f ? 1U : 0U;
    const float t = steep != 0U ? (slope - 1.0f) / (slope + 1.0f) : slope;
    const float z = t * t;
    float p = 8.05374449538e-2f;

    p = p * z - 1.38776856032e-1f;
    p = p * z + 1.99777106478e-1f;
    p = p * z - 3.33329491539e-1f;
    const float near = p * z * t + t;
    return steep != 0U ? 0.7853981634f + near : near;
}

THIMBLE_EXACT_FLOAT float thimble_atan2_f32(float y, float x)
{
    const float width = x < 0.0f ? -x : x;
    const float height = y < 0.0f ? -y : y;

    if (x != x || y != y) {
        return x + y;
    }
    const float more = width > height ? width : height;
    const float less = width > height ? height : width;
    float found = angle(less == more ? (more > 0.0f ? 1.0f : 0.0f) : less / more);
    if (height > width) {
        found = 1.570796371f - (found + 4.371138829e-8f);
    }
    if ((bits_of(x) & 0x80000000U) != 0U) {
        found = 3.141592741f - (found + 8.742277657e-8f);
    }
    return (bits_of(y) & 0x80000000U) != 0U ? -found : found;
}
