/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_svdf_dot.h"

/* Values move down by one place. */
static void move_down(int8_t *state, int32_t count)
{
#if THIMBLE_MVE && THIMBLE_ASM
    const int8_t *from = state + 1;
    __asm volatile("wlstp.8       lr, %[count], 2f        \n"
                   "1:                                   \n"
                   "vldrb.8       q0, [%[from]], #16      \n"
                   "vstrb.8       q0, [%[to]], #16        \n"
                   "letp          lr, 1b                 \n"
                   "2:                                   \n"
                   : [from] "+r"(from), [to] "+r"(state)
                   : [count] "r"(count)
                   : "q0", "memory", "lr");
#else
    (void)memmove(state, state + 1, (size_t)count);
#endif
}

#define STATE int8_t
#define LEAST INT8_MIN
#define MOST INT8_MAX
#define MOVE_DOWN move_down
#define FILTERED thimble_svdf_dot
#define SVDF thimble_svdf_s8
#include "thimble_svdf_body.h"
