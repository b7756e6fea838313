/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

THIMBLE_EXACT_FLOAT void
thimble_box_of_offsets(const double offsets[4], const float anchor[4], const float scales[4], float box[4])
{
    for (int32_t side = 0; side < 2; side++) {
        const double size = (double)anchor[2 + side];
        const double shift = offsets[side] / (double)scales[side];
        const double stretch = offsets[2 + side] / (double)scales[2 + side];
        const float centre = (float)(shift * size + (double)anchor[side]);
        const float half = (float)(0.5 * thimble_exp_f64(stretch) * size);
        box[side] = centre - half;
        box[2 + side] = centre + half;
    }
}
