/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_significant.h"
#include "thimble_spectrum.h"

/* Digit by digit; `bit` is the highest power of 4 that is not above the value, which is not 0. */
static uint32_t root_32(uint32_t value)
{
    uint32_t root = 0;

    if (value == 0U) {
        return 0;
    }
    for (uint32_t bit = 1U << ((thimble_significant_bits(value) - 1) & ~1); bit != 0U; bit >>= 2) {
        if (value >= root + bit) {
            value -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return value > root && root != 0xFFFFU ? root + 1U : root;
}

static uint32_t root_64(uint64_t value)
{
    const int32_t bits = 32 + thimble_significant_bits((uint32_t)(value >> 32));
    uint64_t root = 0;

    for (uint64_t bit = (uint64_t)1 << ((bits - 1) & ~1); bit != 0U; bit >>= 2) {
        if (value >= root + bit) {
            value -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return (uint32_t)(value > root && root != 0xFFFFFFFFU ? root + 1U : root);
}

void thimble_square_roots_u64(const uint64_t *sums, int32_t count, int32_t shift, uint32_t *roots)
{
    for (int32_t i = 0; i < count; i++) {
        const uint64_t sum = sums[i];

        roots[i] = (sum >> 32 == 0U ? root_32((uint32_t)sum) : root_64(sum)) >> shift;
    }
}
