/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"
#include "thimble_f32.h"

/* The four numbers, in the order of y, x, height, width. */
static void encoded(const thimble_decode_params *params,
                    const thimble_head *head,
                    int32_t cell,
                    int32_t anchor,
                    float numbers[4])
{
    for (int32_t i = 0; i < 4; i++) {
        const int32_t channel = params->x_first != 0 ? i ^ 1 : i;
        numbers[i] = thimble_head_number(&head->box_view, head->boxes, cell, anchor, channel);
    }
}

/* A centre on a grid of `cells` along a side, whose whole length is 1. */
THIMBLE_EXACT_FLOAT static float
centre_in(thimble_box_coding coding, float number, int32_t cell, int32_t cells)
{
    const float inside = thimble_logistic_f32(number);
    const float shift = coding == THIMBLE_BOX_SQUARES ? inside * 2.0f - 0.5f : inside;
    return (shift + (float)cell) / (float)cells;
}

/* A size relative to an anchor's. */
THIMBLE_EXACT_FLOAT static float size_of(thimble_box_coding coding, float number, float anchor)
{
    if (coding == THIMBLE_BOX_EXPONENTS) {
        return thimble_exp_f32(number) * anchor;
    }
    const float root = thimble_logistic_f32(number) * 2.0f;
    return root * root * anchor;
}

THIMBLE_EXACT_FLOAT void
thimble_head_box(const thimble_decode_params *params, const thimble_head *head, int32_t place, float box[4])
{
    const int32_t anchor = place / head->cells;
    const int32_t cell = place - anchor * head->cells;
    float numbers[4];
    encoded(params, head, cell, anchor, numbers);
    if (params->coding == THIMBLE_BOX_OFFSETS) {
        const double offsets[4] = {(double)numbers[0], (double)numbers[1], (double)numbers[2],
                                   (double)numbers[3]};
        thimble_box_of_offsets(offsets, &head->sizes[4 * cell], params->scales, box);
        return;
    }
    const int32_t row = cell / head->columns;
    const int32_t at[2] = {row, cell - row * head->columns};
    const int32_t cells[2] = {head->cells / head->columns, head->columns};
    for (int32_t side = 0; side < 2; side++) {
        float centre = numbers[side] / params->scales[side];
        float size = numbers[2 + side] / params->scales[2 + side];
        if (params->coding != THIMBLE_BOX_CENTRES) {
            centre = centre_in(params->coding, numbers[side], at[side], cells[side]);
            size = size_of(params->coding, numbers[2 + side], head->sizes[2 * anchor + side]);
        }
        const float half = 0.5f * size;
        box[side] = centre - half;
        box[2 + side] = centre + half;
    }
}
