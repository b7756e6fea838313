/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

#include <string.h>

/* The head that box `place` of all is of; `place` becomes its number there. */
static const thimble_head *head_of(const thimble_head *heads, int32_t *place)
{
    const thimble_head *head = heads;
    while (*place >= head->cells * head->anchors) {
        *place -= head->cells * head->anchors;
        head++;
    }
    return head;
}

/* Whether a box of a class shares too much with one of the `count` found. */
static int32_t overlaps(const thimble_decode_params *params,
                        const float box[4],
                        float label,
                        const float *found,
                        const float *found_classes,
                        int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t meets =
            params->suppression == THIMBLE_SUPPRESS_ACROSS || found_classes[i] == label ? 1 : 0;
        if (meets != 0 && thimble_overlap(&found[4 * i], box) > params->most_overlap) {
            return 1;
        }
    }
    return 0;
}

/* Numbers of the heads to a heap of candidates. Returns their number. */
static int32_t
select_all(const thimble_decode_params *params, const thimble_head *heads, thimble_candidate *list)
{
    int32_t count = 0;
    int32_t first = 0;
    for (int32_t i = 0; i < params->heads; i++) {
        count = thimble_select_boxes(params, &heads[i], first, list, count);
        first += heads[i].cells * heads[i].anchors;
    }
    for (int32_t i = 0; i < count; i++) {
        list[i].score = -list[i].score;
        list[i].place = -list[i].place;
    }
    thimble_heap_candidates(list, count);
    return count;
}

void thimble_decode_boxes(const thimble_decode_params *params,
                          const thimble_head *heads,
                          void *scratch,
                          float *found,
                          float *found_classes,
                          float *found_scores,
                          float *found_count)
{
    for (int32_t i = 0; i < params->detections; i++) {
        found_classes[i] = 0.0f;
        found_scores[i] = 0.0f;
    }
    for (int32_t i = 0; i < 4 * params->detections; i++) {
        found[i] = 0.0f;
    }
    thimble_candidate *list = scratch;
    int32_t boxes = 0;
    for (int32_t count = select_all(params, heads, list); count > 0 && boxes < params->detections; count--) {
        const thimble_candidate next = thimble_pop_candidate(list, count);
        const int32_t each = params->suppression == THIMBLE_SUPPRESS_EACH_CLASS ? 1 : 0;
        int32_t place = each != 0 ? next.place % params->places : next.place / params->classes;
        const float label = (float)(each != 0 ? next.place / params->places : next.place % params->classes);
        const thimble_head *head = head_of(heads, &place);
        float box[4];
        thimble_head_box(params, head, place, box);
        if (overlaps(params, box, label, found, found_classes, boxes) == 0) {
            (void)memcpy(&found[4 * boxes], box, sizeof(box));
            found_classes[boxes] = label;
            found_scores[boxes] = next.score;
            boxes++;
        }
    }
    found_count[0] = (float)boxes;
}
