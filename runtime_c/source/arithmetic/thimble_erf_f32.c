/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

#include <string.h>

#define LEVELS 24
#define TERMS 28

/* exp(-a^2): the upper 12 bits of a square exactly, and what is left is small. */
THIMBLE_EXACT_FLOAT static float bell_of(float a)
{
    uint32_t bits;
    float high;

    (void)memcpy(&bits, &a, sizeof(bits));
    bits &= 0xFFFFF000u;
    (void)memcpy(&high, &bits, sizeof(high));
    const float rest = (a - high) * (a + high);
    return thimble_exp_f32(-(high * high)) * (1.0f - (rest - 0.5f * (rest * rest)));
}

/* Below 2 a series of positive terms, 2 / sqrt(pi) x exp(-x^2) (1 + 2x^2/3 + (2x^2)^2/15 + ...); above, 1
 * less a continued fraction. */
THIMBLE_EXACT_FLOAT float thimble_erf_f32(float x)
{
    const float a = x < 0.0f ? -x : x;
    if (a >= 4.0f) {
        return x < 0.0f ? -1.0f : 1.0f;
    }
    const float bell = bell_of(a);
    if (a >= 2.0f) {
        float t = a;
        for (int32_t level = LEVELS; level > 0; level--) {
            t = a + 0.5f * (float)level / t;
        }
        const float result = 1.0f - bell * 0.5641895835f / t;
        return x < 0.0f ? -result : result;
    }
    const float z = 2.0f * (x * x);
    float sum = 1.0f;
    for (int32_t odd = 2 * TERMS + 1; odd > 1; odd -= 2) {
        sum = 1.0f + z / (float)odd * sum;
    }
    return 1.128379167f * x * bell * sum;
}
