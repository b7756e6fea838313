/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_svdf_dot.h"

static void move_down(int16_t *state, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        state[i] = state[i + 1];
    }
}

/* The zero point of an int16 state is 0. */
static int32_t filtered(const int16_t *weights, const int16_t *state, int32_t memory, int32_t zero)
{
    int32_t sum = 0;
    (void)zero;
    for (int32_t i = 0; i < memory; i++) {
        sum = thimble_add(sum, weights[i] * state[i]);
    }
    return sum;
}

#define STATE int16_t
#define LEAST INT16_MIN
#define MOST INT16_MAX
#define MOVE_DOWN move_down
#define FILTERED filtered
#define SVDF thimble_svdf_s16_s8
#include "thimble_svdf_body.h"
