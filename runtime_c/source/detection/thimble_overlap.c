/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

THIMBLE_EXACT_FLOAT static float area(const float box[4])
{
    return (box[2] - box[0]) * (box[3] - box[1]);
}

/* What two boxes share along one side; 0 if nothing. */
THIMBLE_EXACT_FLOAT static float shared(const float one[4], const float two[4], int32_t side)
{
    const float begin = one[side] < two[side] ? two[side] : one[side];
    const float end = two[2 + side] < one[2 + side] ? two[2 + side] : one[2 + side];
    const float length = end - begin;
    return length < 0.0f ? 0.0f : length;
}

THIMBLE_EXACT_FLOAT float thimble_overlap(const float one[4], const float two[4])
{
    const float area_1 = area(one);
    const float area_2 = area(two);
    if (area_1 <= 0.0f || area_2 <= 0.0f) {
        return 0.0f;
    }
    const float both = shared(one, two, 0) * shared(one, two, 1);
    return both / (area_1 + area_2 - both);
}
