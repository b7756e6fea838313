/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_angle.h"

#include "thimble_exact_float.h"

#include <string.h>

/* 2 / pi, after 32 bits that are 0. */
static const uint32_t two_over_pi[9] = {0x00000000u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u,
                                        0xDB629599u, 0x3C439041u, 0xFE5163ABu, 0xDEBBC561u};

static uint32_t word_at(uint32_t bit)
{
    const uint32_t index = bit >> 5;
    const uint64_t two = ((uint64_t)two_over_pi[index] << 32) | two_over_pi[index + 1u];

    return (uint32_t)((two << (bit & 31u)) >> 32);
}

/* x = m 2^e: of the bits of 2 / pi those are left out that make whole turns of m 2^e. */
THIMBLE_EXACT_FLOAT float thimble_angle_f32(float x, uint32_t *quarters)
{
    uint32_t bits;

    (void)memcpy(&bits, &x, sizeof(bits));
    const uint32_t first = ((bits >> 23) & 255u) - 120u;
    const uint64_t m = (bits & 0x7FFFFFu) | 0x800000u;
    uint64_t turns = (m * word_at(first + 64u)) >> 32;
    turns += m * word_at(first + 32u);
    turns += (m * word_at(first)) << 32;
    const uint64_t nearest = (turns + ((uint64_t)1u << 61)) >> 62;
    const int64_t rest = (int64_t)(turns - (nearest << 62));
    const float angle = (float)rest * 3.4061215800865545e-19f;
    *quarters = (bits >> 31) != 0u ? 0u - (uint32_t)nearest : (uint32_t)nearest;
    return (bits >> 31) != 0u ? 0.0f - angle : angle;
}
