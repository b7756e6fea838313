/* SPDX-License-Identifier: Apache-2.0 */
/* One of some images, quantised by a range. */
#ifndef THIMBLE_QUANTIZE_IMAGES_H
#define THIMBLE_QUANTIZE_IMAGES_H

#include "thimble_hybrid.h"

/* Quantises image `number` of `images` of `size` values each; returns its zero point. */
static inline int32_t thimble_quantize_image(thimble_range range,
                                             const float *input,
                                             int32_t images,
                                             int32_t number,
                                             int32_t size,
                                             int8_t *stored,
                                             float *scale)
{
    const float *const own = &input[number * size];
    if (range == THIMBLE_RANGE_ONNX) {
        return thimble_quantize_dynamic_f32(input, images * size, own, size, stored, scale);
    }
    return thimble_quantize_range_f32(own, size, range == THIMBLE_RANGE_ASYMMETRIC ? 1 : 0, stored, scale);
}

#endif
