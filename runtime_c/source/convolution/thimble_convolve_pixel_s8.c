/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lone_pixel.h"
#include "thimble_requantize_s8.h"

void thimble_convolve_pixel_s8(const thimble_inside_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               int8_t *output)
{
    const int32_t words = shape->kernel_h * shape->row_words, block = 2 * words + 5;
    const int32_t narrow = thimble_narrow(requant), channels = shape->output_c;
    int8_t results[THIMBLE_LONE_CHANNELS + 3];
    int8_t *to = results;
    for (int32_t left = channels; left > 0; left -= 4) {
        int32_t sums[4];
        const int32_t *const second = left > 2 ? parameters + block : parameters;
        thimble_sum_pixel_s8(shape, input, parameters, second, sums);
        for (int32_t i = 0; i < 4; i += 2) {
            const int32_t *const at = (i ? second : parameters) + block - 3;
            const int32_t codes = at[2];
            const int32_t code_0 = thimble_bottom((uint32_t)codes), code_1 = codes >> 16;
            if (narrow || (codes & (int32_t)0x80008000)) {
                *to++ = thimble_requantize_s8(sums[i], at[0], code_0, requant);
                *to++ = thimble_requantize_s8(sums[i + 1], at[1], code_1, requant);
            } else {
                *to++ = (int8_t)thimble_requantize_fast(sums[i], at[0], code_0,
                                                        thimble_rounding(requant, code_0));
                *to++ = (int8_t)thimble_requantize_fast(sums[i + 1], at[1], code_1,
                                                        thimble_rounding(requant, code_1));
            }
        }
        parameters += 2 * block;
    }
    for (int32_t i = 0; i < channels; i++) {
        output[i] = results[i];
    }
}
