/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"
#include "thimble_f32.h"

/* An anchor of a cell: its number in all heads, and what its classes' scores have in common. */
typedef struct {
    const thimble_decode_params *params;
    const thimble_head *head;
    int32_t cell;
    int32_t anchor;
    int32_t place;
    float object;
    float peak;
    float total;
} thimble_box_scores;

typedef struct {
    thimble_candidate *list;
    int32_t count;
} thimble_candidates;

static float number(const thimble_box_scores *of, int32_t channel)
{
    return thimble_head_number(&of->head->score_view, of->head->scores, of->cell, of->anchor, channel);
}

static float number_of_class(const thimble_box_scores *of, int32_t label)
{
    return number(of, of->params->background + label);
}

/* Keeps one candidate, unless there are enough better ones. */
static void keep(const thimble_decode_params *params, thimble_candidates *kept, float score, int32_t place)
{
    const thimble_candidate one = {-score, -place};
    if (kept->count == params->candidates) {
        const thimble_candidate *worst = &kept->list[0];
        if (one.score < worst->score || (one.score == worst->score && one.place > worst->place)) {
            thimble_replace_candidate(kept->list, kept->count, one);
        }
        return;
    }
    kept->list[kept->count] = one;
    kept->count++;
    if (kept->count == params->candidates) {
        thimble_heap_candidates(kept->list, kept->count);
    }
}

/* Keeps the box with this class, if its score is enough. */
THIMBLE_EXACT_FLOAT static void offer(const thimble_box_scores *of, int32_t label, thimble_candidates *kept)
{
    const thimble_decode_params *params = of->params;
    const float raw = number_of_class(of, label) - of->peak;
    if (!(raw >= params->least_number)) {
        return;
    }
    float score = raw;
    if (params->scoring == THIMBLE_SCORE_LOGISTIC) {
        score = thimble_logistic_f32(raw);
    } else if (params->scoring == THIMBLE_SCORE_SOFTMAX) {
        score = thimble_exp_f32(raw) / of->total;
    } else {
        /* It is the number. */
    }
    score *= of->object;
    if (score >= params->least_score) {
        const int32_t each = params->suppression == THIMBLE_SUPPRESS_EACH_CLASS ? 1 : 0;
        keep(params, kept, score,
             each != 0 ? label * params->places + of->place : of->place * params->classes + label);
    }
}

/* The largest number of a softmax and the sum of its exponentials. Returns 0 if `best` of its numbers has too
 * low a score. */
THIMBLE_EXACT_FLOAT static int32_t sum_up(thimble_box_scores *of, float best)
{
    const int32_t channels = of->params->background + of->params->classes;
    float peak = number(of, 0);
    for (int32_t channel = 1; channel < channels; channel++) {
        const float raw = number(of, channel);
        peak = raw > peak ? raw : peak;
    }
    if (!(best - peak >= of->params->least_number)) {
        return 0;
    }
    of->peak = peak;
    of->total = 0.0f;
    for (int32_t channel = 0; channel < channels; channel++) {
        of->total += thimble_exp_f32(number(of, channel) - peak);
    }
    return 1;
}

/* The class with the largest number; of equal ones the first. Stored numbers have the order of those that
 * they stand for. */
static int32_t best_class(const thimble_box_scores *of)
{
    const thimble_view *view = &of->head->score_view;
    int32_t label = 0;
    if (view->numbers.bytes == 1) {
        const int8_t *at = &(
            (const int8_t *)
                of->head->scores)[view->first + of->cell * view->cell_step + of->anchor * view->anchor_step +
                                  of->params->background * view->channel_step];
        int32_t best = at[0];
        for (int32_t i = 1; i < of->params->classes; i++) {
            at += view->channel_step;
            if (at[0] > best) {
                best = at[0];
                label = i;
            }
        }
        return label;
    }
    float best = number_of_class(of, 0);
    for (int32_t i = 1; i < of->params->classes; i++) {
        const float raw = number_of_class(of, i);
        if (raw > best) {
            best = raw;
            label = i;
        }
    }
    return label;
}

static void offer_classes(thimble_box_scores *of, thimble_candidates *kept)
{
    const thimble_decode_params *params = of->params;
    const int32_t best_label = best_class(of);
    const float best = number_of_class(of, best_label);
    if (params->scoring == THIMBLE_SCORE_SOFTMAX) {
        if (sum_up(of, best) == 0) {
            return;
        }
    } else if (!(best >= params->least_number)) {
        return;
    } else {
        /* Its score may be enough. */
    }
    if (params->suppression != THIMBLE_SUPPRESS_EACH_CLASS) {
        offer(of, best_label, kept);
        return;
    }
    for (int32_t label = 0; label < params->classes; label++) {
        offer(of, label, kept);
    }
}

int32_t thimble_select_boxes(const thimble_decode_params *params,
                             const thimble_head *head,
                             int32_t first,
                             thimble_candidate *list,
                             int32_t count)
{
    thimble_candidates kept = {list, count};
    int32_t place = first;
    for (int32_t anchor = 0; anchor < head->anchors; anchor++) {
        for (int32_t cell = 0; cell < head->cells; cell++) {
            thimble_box_scores one = {params, head, cell, anchor, place, 1.0f, 0.0f, 1.0f};
            place++;
            if (params->objectness != 0) {
                const float raw = number(&one, -1);
                if (!(raw >= params->least_number)) {
                    continue;
                }
                one.object = params->scoring == THIMBLE_SCORE_LOGISTIC ? thimble_logistic_f32(raw) : raw;
            }
            offer_classes(&one, &kept);
        }
    }
    return kept.count;
}
