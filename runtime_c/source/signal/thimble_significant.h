/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THIMBLE_SIGNIFICANT_H
#define THIMBLE_SIGNIFICANT_H

#include <stdint.h>

/** The number of bits of a value: 0 for 0. */
static inline int32_t thimble_significant_bits(uint32_t value)
{
    return value == 0U ? 0 : 32 - (int32_t)__builtin_clz(value);
}

#endif
