/* SPDX-License-Identifier: Apache-2.0 */
/* Short runs of bytes, in vectors where there are any. */
#ifndef THIMBLE_BYTES_H
#define THIMBLE_BYTES_H

#include "thimble_lanes.h"

/* Both return what follows the last byte. */
static inline int8_t *thimble_fill_bytes(int8_t *to, int32_t count, uint32_t zero_points)
{
#if THIMBLE_MVE && THIMBLE_ASM
    const int8x16_t filling = vdupq_n_s8((int8_t)(uint8_t)zero_points);
    int8_t *at = to;
    __asm volatile("wlstp.8       lr, %[count], 2f        \n"
                   "1:                                   \n"
                   "vstrb.8       %q[filling], [%[at]], #16\n"
                   "letp          lr, 1b                 \n"
                   "2:                                   \n"
                   : [at] "+r"(at)
                   : [count] "r"(count), [filling] "w"(filling)
                   : "memory", "lr");
    return to + count;
#else
    for (; count > 0; count--) {
        *to++ = (int8_t)(uint8_t)zero_points;
    }
    return to;
#endif
}

static inline int8_t *thimble_copy_bytes(int8_t *to, const int8_t *from, int32_t count)
{
#if THIMBLE_MVE && THIMBLE_ASM
    int8_t *at = to;
    __asm volatile("wlstp.8       lr, %[count], 2f        \n"
                   "1:                                   \n"
                   "vldrb.8       q0, [%[from]], #16     \n"
                   "vstrb.8       q0, [%[at]], #16       \n"
                   "letp          lr, 1b                 \n"
                   "2:                                   \n"
                   : [at] "+r"(at), [from] "+r"(from)
                   : [count] "r"(count)
                   : "q0", "memory", "lr");
    return to + count;
#else
    for (; count >= 4; count -= 4, from += 4, to += 4) {
        (void)memcpy(to, from, 4);
    }
    for (; count > 0; count--) {
        *to++ = *from++;
    }
    return to;
#endif
}

#endif
