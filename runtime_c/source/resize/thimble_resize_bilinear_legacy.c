/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lanes.h"
#include "thimble_neighbours.h"

#include <stddef.h>

#define RAISE 128

/* The same channel of four pixels. */
typedef struct {
    const int8_t *top_left, *top_right, *bottom_left, *bottom_right;
} corners;

#if THIMBLE_MVE && (__ARM_FEATURE_MVE & 2)
THIMBLE_EXACT_FLOAT static inline float32x4_t
weighed(const int8_t *from, mve_pred16_t lanes, float down, float across)
{
    const int32x4_t raised = vaddq_n_s32(vldrbq_z_s32(from, lanes), RAISE);
    return vmulq_n_f32(vmulq_n_f32(vcvtq_f32_s32(raised), down), across);
}

THIMBLE_EXACT_FLOAT static inline void put_pixel(const corners *from,
                                                 const thimble_neighbours *y,
                                                 const thimble_neighbours *x,
                                                 int32_t channels,
                                                 int8_t *to)
{
    for (int32_t c = 0; c < channels; c += 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)(channels - c));
        const float32x4_t a = weighed(from->top_left + c, lanes, y->near_lower, x->near_lower);
        const float32x4_t b = weighed(from->bottom_left + c, lanes, y->near_upper, x->near_lower);
        const float32x4_t d = weighed(from->top_right + c, lanes, y->near_lower, x->near_upper);
        const float32x4_t e = weighed(from->bottom_right + c, lanes, y->near_upper, x->near_upper);
        const float32x4_t value = vaddq_n_f32(vaddq_f32(vaddq_f32(vaddq_f32(a, b), d), e), 0.5f);
        vstrbq_p_s32(to + c, vsubq_n_s32(vcvtq_s32_f32(value), RAISE), lanes);
    }
}
#else
THIMBLE_EXACT_FLOAT static inline void put_pixel(const corners *from,
                                                 const thimble_neighbours *y,
                                                 const thimble_neighbours *x,
                                                 int32_t channels,
                                                 int8_t *to)
{
    for (int32_t c = 0; c < channels; c++) {
        const float a = (float)(from->top_left[c] + RAISE) * y->near_lower * x->near_lower;
        const float b = (float)(from->bottom_left[c] + RAISE) * y->near_upper * x->near_lower;
        const float d = (float)(from->top_right[c] + RAISE) * y->near_lower * x->near_upper;
        const float e = (float)(from->bottom_right[c] + RAISE) * y->near_upper * x->near_upper;
        const float value = a + b + d + e + 0.5f;
        to[c] = (int8_t)((int32_t)value - RAISE);
    }
}
#endif

THIMBLE_EXACT_FLOAT void thimble_resize_bilinear_legacy(const thimble_resize_float_params *params,
                                                        const int8_t *source,
                                                        int8_t *target)
{
    const int32_t channels = params->channels, half_pixel = params->half_pixel_centers;
    const ptrdiff_t row = (ptrdiff_t)channels * params->input_width;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t i = 0; i < params->output_height; i++) {
            const thimble_neighbours y = thimble_around(i, &params->rows, half_pixel, params->input_height);
            const int8_t *const top = source + y.lower * row, *const bottom = source + y.upper * row;
            for (int32_t j = 0; j < params->output_width; j++) {
                const thimble_neighbours x =
                    thimble_around(j, &params->columns, half_pixel, params->input_width);
                const ptrdiff_t left = (ptrdiff_t)x.lower * channels, right = (ptrdiff_t)x.upper * channels;
                const corners from = {top + left, top + right, bottom + left, bottom + right};
                put_pixel(&from, &y, &x, channels, target);
                target += channels;
            }
        }
        source += row * params->input_height;
    }
}
