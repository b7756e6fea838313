/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lone_pixel.h"
#include "thimble_requantize_s8.h"

void thimble_convolve_pixel_s8(const thimble_inside_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               int8_t *output)
{
    const int32_t words = shape->kernel_h * shape->row_words, block = 2 * words + 7;
    const int32_t channels = shape->output_c;
    int8_t results[THIMBLE_LONE_CHANNELS + 3];
    int8_t *to = results;
    for (int32_t left = channels; left > 0; left -= 4) {
        int32_t sums[4];
        const int32_t *const second = left > 2 ? parameters + block : parameters;
        thimble_sum_pixel_s8(shape, input, parameters, second, sums);
        for (int32_t i = 0; i < 4; i += 2) {
            const int32_t *const at = (i ? second : parameters) + block - 5;
            *to++ = thimble_requantize_lane_s8(sums[i], at, 0, requant);
            *to++ = thimble_requantize_lane_s8(sums[i + 1], at, 1, requant);
        }
        parameters += 2 * block;
    }
    for (int32_t i = 0; i < channels; i++) {
        /* cppcheck-suppress [uninitvar]: the loop above wrote all channels. */
        output[i] = results[i];
    }
}
