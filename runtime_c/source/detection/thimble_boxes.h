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

/* The same of four numbers, y, x, height, width, relative to an anchor; `scales` divide them. */
void thimble_box_of_offsets(const double offsets[4],
                            const float anchor[4],
                            const float scales[4],
                            float box[4]);

/* The number of a head at `channel` of an anchor of a cell. */
float thimble_head_number(
    const thimble_view *view, const void *data, int32_t cell, int32_t anchor, int32_t channel);

/* ymin, xmin, ymax, xmax of box `place` of a head. */
void thimble_head_box(const thimble_decode_params *params,
                      const thimble_head *head,
                      int32_t place,
                      float box[4]);

/* Adds the candidates of a head whose scores are enough to the `count` of the list, and returns how many
 * there are. `first` is the place of its first box. Where there are more than `params->candidates`, the best
 * stay, as a heap of their negatives, whose top is the worst. */
int32_t thimble_select_boxes(const thimble_decode_params *params,
                             const thimble_head *head,
                             int32_t first,
                             thimble_candidate *list,
                             int32_t count);

/* The area that two boxes share over the area that they cover together. */
float thimble_overlap(const float one[4], const float two[4]);

/* The best candidate of a heap of `count`, which it leaves with one less. `thimble_heap_candidates` makes the
 * heap; `thimble_replace_candidate` puts another in the place of the best. Of equal scores the lower place is
 * better. */
void thimble_heap_candidates(thimble_candidate *heap, int32_t count);
thimble_candidate thimble_pop_candidate(thimble_candidate *heap, int32_t count);
void thimble_replace_candidate(thimble_candidate *heap, int32_t count, thimble_candidate one);

/* Puts the `wanted` best of `count`, at least 2, in front, best first. Equal ones stand as the partial_sort
 * of GNU's C++ library, which LiteRT calls, leaves them. */
void thimble_sort_partly(thimble_candidate *list, int32_t count, int32_t wanted);

#endif
