/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_requantize_s8.h"
#include "thimble_svdf.h"
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

void thimble_svdf_s8(const thimble_svdf_params *params,
                     const int8_t *input,
                     const int8_t *features,
                     const int8_t *time,
                     const int32_t *bias,
                     int8_t *state,
                     int8_t *output)
{
    const thimble_svdf_params p = *params;
    for (int32_t batch = 0; batch < p.batches; batch++, input += p.depth) {
        const int8_t *feature = features;
        const int8_t *weights = time;
        for (int32_t unit = 0; unit < p.units; unit++) {
            int32_t sum = bias ? bias[unit] : 0;
            for (int32_t filter = 0; filter < p.rank; filter++) {
                const int32_t found = thimble_svdf_dot(feature, input, p.depth, p.input_zero_point);
                const int32_t scaled = thimble_scaled(found, p.into_multiplier, p.into_shift);
                const int32_t newest = thimble_clamp_sum(scaled, INT8_MIN, INT8_MAX) + p.state_zero_point;
                move_down(state, p.memory - 1);
                state[p.memory - 1] = (int8_t)(uint8_t)newest; /* wraps as TFLM's does */
                sum = thimble_add(sum, thimble_svdf_dot(weights, state, p.memory, p.state_zero_point));
                feature += p.depth;
                weights += p.memory;
                state += p.memory;
            }
            const int32_t result = thimble_scaled(sum, p.out_multiplier, p.out_shift);
            *output++ =
                (int8_t)thimble_clamp_sum(thimble_add(result, p.output_zero_point), INT8_MIN, INT8_MAX);
        }
    }
}
