/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

THIMBLE_EXACT_FLOAT float
thimble_head_number(const thimble_view *view, const void *data, int32_t cell, int32_t anchor, int32_t channel)
{
    const int32_t at =
        view->first + cell * view->cell_step + anchor * view->anchor_step + channel * view->channel_step;
    if (view->numbers.bytes == 1) {
        return view->numbers.scale * (float)(((const int8_t *)data)[at] - view->numbers.zero_point);
    }
    return ((const float *)data)[at];
}
