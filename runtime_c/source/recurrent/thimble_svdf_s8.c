/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_requantize_s8.h"
#include "thimble_svdf.h"

/* The sum of a * (b - zero). */
static int32_t dot(const int8_t *a, const int8_t *b, int32_t size, int32_t zero)
{
    const uint32_t minus = (uint32_t)-zero & 0xFFFFU;
    const uint32_t offsets = minus | (minus << 16);
    int32_t sum = 0;
    int32_t i = 0;
    for (; i + 4 <= size; i += 4) {
        const uint32_t x = thimble_read_word(a + i);
        const uint32_t y = thimble_read_word(b + i);
        const uint32_t even = thimble_sxtb16(x);
        const uint32_t odd = thimble_sxtb16_ror8(x);
        sum = thimble_smlad(even, thimble_sxtb16(y), sum);
        sum = thimble_smlad(odd, thimble_sxtb16_ror8(y), sum);
        sum = thimble_smlad(even, offsets, sum);
        sum = thimble_smlad(odd, offsets, sum);
    }
    for (; i < size; i++) {
        sum = thimble_add(sum, a[i] * (b[i] - zero));
    }
    return sum;
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
                const int32_t found = dot(feature, input, p.depth, p.input_zero_point);
                const int32_t scaled = thimble_scaled(found, p.into_multiplier, p.into_shift);
                const int32_t newest = thimble_clamp_sum(scaled, INT8_MIN, INT8_MAX) + p.state_zero_point;
                memmove(state, state + 1, (size_t)(p.memory - 1));
                state[p.memory - 1] = (int8_t)(uint8_t)newest; /* wraps as TFLM's does */
                sum = thimble_add(sum, dot(weights, state, p.memory, p.state_zero_point));
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
