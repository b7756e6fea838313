/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a detector: boxes of the anchors whose scores are best and that do not overlap better ones.
 */
#ifndef THIMBLE_DETECTION_H
#define THIMBLE_DETECTION_H

#include <stdint.h>

/** How a tensor holds numbers: `bytes` is 1 for int8, which stands for scale * (stored - zero_point), and 4
 *  for float. */
typedef struct {
    int32_t bytes;
    int32_t zero_point;
    float scale;
} thimble_numbers;

/** anchors       boxes to choose from.
 *  coordinates   numbers that encode a box, of which the first four are read: centre y, x, height, width.
 *  classes       scores of an anchor that count; `background` scores lie before them.
 *  best_classes  classes that are reported of a box.
 *  detections    boxes to report at most.
 *  each_class    boxes of a class at most, where overlaps are suppressed within a class; 0 where they are
 *                suppressed over the best classes of the boxes.
 *  least_score, most_overlap  a box with less, or that shares more with a better one, is dropped.
 *  scales        by which the encoded y, x, height and width are divided. */
typedef struct {
    int32_t anchors;
    int32_t coordinates;
    int32_t classes;
    int32_t background;
    int32_t best_classes;
    int32_t detections;
    int32_t each_class;
    float least_score;
    float most_overlap;
    float scales[4];
    thimble_numbers encodings;
    thimble_numbers scores;
} thimble_detect_params;

/** Decodes boxes and suppresses those that overlap better ones, as TFLite_Detection_PostProcess.
 *
 *  `anchors` are [anchors][4]: centre y, x, height, width. `found` gets ymin, xmin, ymax, xmax for each of
 *  `detections` * `best_classes` places, `found_classes` and `found_scores` one number, and `found_count` how
 *  many boxes there are. The rest is 0. `scratch` has thimble_detect's bytes at 4: 8 for each anchor; with
 *  `each_class`, 16 for each anchor and 8 * (detections + the smaller of `anchors` and `each_class`) more;
 *  else 8 for each class more, if best_classes is above 1. */
void thimble_detect(const thimble_detect_params *params,
                    const void *encodings,
                    const void *scores,
                    const float *anchors,
                    void *scratch,
                    float *found,
                    float *found_classes,
                    float *found_scores,
                    float *found_count);

/** How a box is encoded.
 *
 *  THIMBLE_BOX_OFFSETS    centre and logarithm of the size relative to an anchor, each divided by a scale
 * (SSD). THIMBLE_BOX_CENTRES    centre and size themselves, each divided by a scale (YOLO v8 and v11).
 *  THIMBLE_BOX_SQUARES    centre relative to a cell of a grid, 2 logistic(x) - 0.5, and size relative to an
 *                         anchor, (2 logistic(x))^2 (YOLO v5 and v7).
 *  THIMBLE_BOX_EXPONENTS  the same as logistic(x) and exp(x) (YOLO v3). */
typedef enum {
    THIMBLE_BOX_OFFSETS,
    THIMBLE_BOX_CENTRES,
    THIMBLE_BOX_SQUARES,
    THIMBLE_BOX_EXPONENTS
} thimble_box_coding;

/** What makes a score of the number that a head holds. */
typedef enum { THIMBLE_SCORE_PLAIN, THIMBLE_SCORE_LOGISTIC, THIMBLE_SCORE_SOFTMAX } thimble_scoring;

/** Which boxes suppress one another, each with the score of its best class or with one for each class. */
typedef enum {
    THIMBLE_SUPPRESS_BEST_CLASS, /**< each box in its best class */
    THIMBLE_SUPPRESS_EACH_CLASS, /**< each box in every class */
    THIMBLE_SUPPRESS_ACROSS      /**< each box by its best class, whatever the class of the other */
} thimble_suppression;

/** Where the numbers of a head lie: number `channel` of anchor `anchor` of cell `cell` is the element first +
 *  cell * cell_step + anchor * anchor_step + channel * channel_step. */
typedef struct {
    thimble_numbers numbers;
    int32_t first;
    int32_t cell_step;
    int32_t anchor_step;
    int32_t channel_step;
} thimble_view;

/** One head: `cells` in rows of `columns`, each with `anchors` boxes.
 *
 *  `box_view` has the four numbers of a box from channel 0 on. `score_view` has the scores: `background`
 * ones, then those of the classes, and at channel -1 whether there is an object at all, if that is told.
 * `sizes` are the anchors: of offsets [cells][4], centre y, x, height, width; of squares and exponents
 * [anchors][2], height and width; else NULL. */
typedef struct {
    const void *boxes;
    const void *scores;
    const float *sizes;
    int32_t cells;
    int32_t columns;
    int32_t anchors;
    thimble_view box_view;
    thimble_view score_view;
} thimble_head;

/** heads         of the network.
 *  places        boxes of all heads.
 *  coding, scoring, suppression  see there.
 *  x_first       a box is encoded as x, y, width, height; else as y, x, height, width.
 *  objectness    1 if a score is multiplied by that of there being an object.
 *  background    1 if a score of the background comes before those of the classes.
 *  classes       scores of a box that count.
 *  candidates    the best of all scores, of which boxes are chosen.
 *  detections    boxes to report at most.
 *  least_score, most_overlap  a box with less, or that shares more with a better one, is dropped.
 *  least_number  a number below this (below the largest of its softmax plus this) has less than least_score.
 *  scales        by which the encoded y, x, height and width are divided. */
typedef struct {
    int32_t heads;
    int32_t places;
    thimble_box_coding coding;
    thimble_scoring scoring;
    thimble_suppression suppression;
    int32_t x_first;
    int32_t objectness;
    int32_t background;
    int32_t classes;
    int32_t candidates;
    int32_t detections;
    float least_score;
    float most_overlap;
    float least_number;
    float scales[4];
} thimble_decode_params;

/** Decodes the boxes of a detector's heads and suppresses those that overlap better ones.
 *
 *  `found` gets ymin, xmin, ymax, xmax for each of `detections` places, best first, `found_classes` and
 *  `found_scores` one number, and `found_count` how many boxes there are. The rest is 0. Of equal scores the
 *  lower place is better; where each class counts, the lower class, then the lower place. A place is the
 * number of a box: by head, anchor and cell. `scratch` has 8 bytes for each of `candidates`. */
void thimble_decode_boxes(const thimble_decode_params *params,
                          const thimble_head *heads,
                          void *scratch,
                          float *found,
                          float *found_classes,
                          float *found_scores,
                          float *found_count);

#endif
