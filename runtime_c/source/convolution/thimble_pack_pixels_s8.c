/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_packed.h"

static inline uint32_t packed(int8_t a, int8_t b)
{
    return (uint32_t)(int32_t)a + ((uint32_t)(int32_t)b << 16);
}

uint32_t *thimble_pack_pixels_s8(const int8_t *a, const int8_t *b, int32_t count, uint32_t *to)
{
    for (; count >= 4; count -= 4, a += 4, b += 4, to += 8) {
        to[0] = packed(a[0], b[0]);
        to[2] = packed(a[1], b[1]);
        to[4] = packed(a[2], b[2]);
        to[6] = packed(a[3], b[3]);
    }
    for (; count > 0; count--, to += 2) {
        *to = packed(*a++, *b++);
    }
    return to;
}
