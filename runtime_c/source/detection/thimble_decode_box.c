/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

THIMBLE_EXACT_FLOAT static double number(const thimble_numbers *numbers, const void *data, int32_t at)
{
    if (numbers->bytes == 1) {
        return (double)(numbers->scale * (float)(((const int8_t *)data)[at] - numbers->zero_point));
    }
    return (double)((const float *)data)[at];
}

THIMBLE_EXACT_FLOAT void thimble_decode_box(const thimble_detect_params *params,
                                            const void *encodings,
                                            const float *anchors,
                                            int32_t place,
                                            float box[4])
{
    double offsets[4];
    for (int32_t i = 0; i < 4; i++) {
        offsets[i] = number(&params->encodings, encodings, place * params->coordinates + i);
    }
    thimble_box_of_offsets(offsets, &anchors[4 * place], params->scales, box);
}
