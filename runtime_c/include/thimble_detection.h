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

#endif
