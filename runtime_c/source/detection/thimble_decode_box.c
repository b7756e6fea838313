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
    const float *anchor = &anchors[4 * place];
    const int32_t from = place * params->coordinates;
    for (int32_t side = 0; side < 2; side++) {
        const double size = (double)anchor[2 + side];
        const double shift =
            number(&params->encodings, encodings, from + side) / (double)params->scales[side];
        const double stretch =
            number(&params->encodings, encodings, from + 2 + side) / (double)params->scales[2 + side];
        const float centre = (float)(shift * size + (double)anchor[side]);
        const float half = (float)(0.5 * thimble_exp_f64(stretch) * size);
        box[side] = centre - half;
        box[2 + side] = centre + half;
    }
}
