/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

#include <string.h>

/* The score of a class of an anchor, without the background. */
THIMBLE_EXACT_FLOAT static float
score_of(const thimble_detect_params *params, const void *scores, int32_t place, int32_t label)
{
    const int32_t at = place * (params->classes + params->background) + params->background + label;
    if (params->scores.bytes == 1) {
        return params->scores.scale * (float)(((const int8_t *)scores)[at] - params->scores.zero_point);
    }
    return ((const float *)scores)[at];
}

/* Whether a box shares too much with one of `count`, which lie at every `step` boxes. */
static int32_t overlaps(
    const thimble_detect_params *params, const float box[4], const float *others, int32_t step, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (thimble_overlap(&others[4 * step * i], box) > params->most_overlap) {
            return 1;
        }
    }
    return 0;
}

/* The best class of an anchor; of equal ones the first. */
static thimble_candidate best_class(const thimble_detect_params *params, const void *scores, int32_t place)
{
    thimble_candidate best = {score_of(params, scores, place, 0), 0};
    for (int32_t label = 1; label < params->classes; label++) {
        const float score = score_of(params, scores, place, label);
        if (score > best.score) {
            best.score = score;
            best.place = label;
        }
    }
    return best;
}

/* The `given` best classes of an anchor, in front of `list`, which has room for all if it is more than one.
 */
static void best_classes(const thimble_detect_params *params,
                         const void *scores,
                         int32_t place,
                         int32_t given,
                         thimble_candidate *list)
{
    if (given == 1) {
        list[0] = best_class(params, scores, place);
        return;
    }
    for (int32_t label = 0; label < params->classes; label++) {
        list[label].score = score_of(params, scores, place, label);
        list[label].place = label;
    }
    thimble_sort_partly(list, params->classes, given);
}

/* Over the best class of each anchor. Returns the number of boxes. */
static int32_t suppress_best(const thimble_detect_params *params,
                             const void *encodings,
                             const void *scores,
                             const float *anchors,
                             thimble_candidate *heap,
                             float *found,
                             float *found_classes,
                             float *found_scores)
{
    const int32_t step = params->best_classes;
    const int32_t given = step < params->classes ? step : params->classes;
    thimble_candidate one = {0.0f, 0};
    thimble_candidate *const list = given == 1 ? &one : &heap[params->anchors];
    int32_t count = 0;
    for (int32_t place = 0; place < params->anchors; place++) {
        const float best = best_class(params, scores, place).score;
        if (best >= params->least_score) {
            heap[count].score = best;
            heap[count].place = place;
            count++;
        }
    }
    thimble_heap_candidates(heap, count);
    int32_t boxes = 0;
    for (; count > 0 && boxes < params->detections; count--) {
        const int32_t place = thimble_pop_candidate(heap, count).place;
        float box[4];
        thimble_decode_box(params, encodings, anchors, place, box);
        if (overlaps(params, box, found, step, boxes) != 0) {
            continue;
        }
        best_classes(params, scores, place, given, list);
        for (int32_t i = 0; i < given; i++) {
            (void)memcpy(&found[4 * (boxes * step + i)], box, sizeof(box));
            found_classes[boxes * step + i] = (float)list[i].place;
            found_scores[boxes * step + i] = list[i].score;
        }
        boxes++;
    }
    return boxes;
}

/* Sorts `more` candidates into the `count` before them, best first; of equal ones the former stays first.
 * Returns the number of all. */
static int32_t insert(thimble_candidate *list, int32_t count, int32_t more)
{
    for (int32_t i = count; i < count + more; i++) {
        const thimble_candidate one = list[i];
        int32_t to = i;
        for (; to > 0 && list[to - 1].score < one.score; to--) {
            list[to] = list[to - 1];
        }
        list[to] = one;
    }
    return count + more;
}

/* Within each class. `boxes` has those of all anchors with a score that counts. Returns the number of boxes.
 */
static int32_t suppress_within_classes(const thimble_detect_params *params,
                                       const void *scores,
                                       const float *boxes,
                                       thimble_candidate *heap,
                                       thimble_candidate *list)
{
    int32_t kept = 0;
    for (int32_t label = 0; label < params->classes; label++) {
        int32_t count = 0;
        for (int32_t place = 0; place < params->anchors; place++) {
            const float score = score_of(params, scores, place, label);
            if (score >= params->least_score) {
                heap[count].score = score;
                heap[count].place = place;
                count++;
            }
        }
        thimble_heap_candidates(heap, count);
        int32_t chosen = 0;
        for (; count > 0 && chosen < params->each_class; count--) {
            const thimble_candidate next = thimble_pop_candidate(heap, count);
            int32_t clear = 1;
            for (int32_t i = 0; clear != 0 && i < chosen; i++) {
                const int32_t other = list[kept + i].place / params->classes;
                clear =
                    thimble_overlap(&boxes[4 * other], &boxes[4 * next.place]) > params->most_overlap ? 0 : 1;
            }
            if (clear != 0) {
                list[kept + chosen].score = next.score;
                list[kept + chosen].place = next.place * params->classes + label;
                chosen++;
            }
        }
        kept = insert(list, kept, chosen);
        kept = kept < params->detections ? kept : params->detections;
    }
    return kept;
}

void thimble_detect(const thimble_detect_params *params,
                    const void *encodings,
                    const void *scores,
                    const float *anchors,
                    void *scratch,
                    float *found,
                    float *found_classes,
                    float *found_scores,
                    float *found_count)
{
    const int32_t places = params->detections * params->best_classes;
    for (int32_t i = 0; i < places; i++) {
        found_classes[i] = 0.0f;
        found_scores[i] = 0.0f;
    }
    for (int32_t i = 0; i < 4 * places; i++) {
        found[i] = 0.0f;
    }
    thimble_candidate *heap = scratch;
    if (params->each_class == 0) {
        found_count[0] = (float)suppress_best(params, encodings, scores, anchors, heap, found, found_classes,
                                              found_scores);
        return;
    }
    float *boxes = (float *)&heap[params->anchors];
    thimble_candidate *list = (thimble_candidate *)(void *)&boxes[4 * params->anchors];
    for (int32_t place = 0; place < params->anchors; place++) {
        for (int32_t label = 0; label < params->classes; label++) {
            if (score_of(params, scores, place, label) >= params->least_score) {
                thimble_decode_box(params, encodings, anchors, place, &boxes[4 * place]);
                break;
            }
        }
    }
    const int32_t kept = suppress_within_classes(params, scores, boxes, heap, list);
    for (int32_t i = 0; i < kept; i++) {
        const int32_t place = list[i].place / params->classes;
        (void)memcpy(&found[4 * i], &boxes[4 * place], 4 * sizeof(float));
        found_classes[i] = (float)(list[i].place - place * params->classes);
        found_scores[i] = list[i].score;
    }
    found_count[0] = (float)kept;
}
