/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of a detector, and the order of their scores. */
#ifndef THIMBLE_BOXES_H
#define THIMBLE_BOXES_H

#include "thimble_detection.h"
#include "thimble_exact_float.h"

#include <stdint.h>

typedef struct {
    float score;
    int32_t place;
} thimble_candidate;

/* exp in double, within one unit in the last place; 0 where that is below the smallest normal number. */
double thimble_exp_f64(double x);

/* ymin, xmin, ymax, xmax of the box of an anchor. */
void thimble_decode_box(const thimble_detect_params *params,
                        const void *encodings,
                        const float *anchors,
                        int32_t place,
                        float box[4]);

/* The area that two boxes share over the area that they cover together. */
float thimble_overlap(const float one[4], const float two[4]);

/* The best candidate of a heap of `count`, which it leaves with one less. `thimble_heap_candidates` makes the
 * heap. Of equal scores the lower place is better. */
void thimble_heap_candidates(thimble_candidate *heap, int32_t count);
thimble_candidate thimble_pop_candidate(thimble_candidate *heap, int32_t count);

/* Puts the `wanted` best of `count`, at least 2, in front, best first. Equal ones stand as the partial_sort
 * of GNU's C++ library, which LiteRT calls, leaves them. */
void thimble_sort_partly(thimble_candidate *list, int32_t count, int32_t wanted);

#endif
