/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a hybrid convolution, around sums of four filters. */
#ifndef THIMBLE_HYBRID_WINDOWS_H
#define THIMBLE_HYBRID_WINDOWS_H

#include "thimble_dsp.h"
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_hybrid.h"
#include "thimble_quantize_images.h"
#include "thimble_sum_four.h"
#include "thimble_units.h"

#include <string.h>

/* A quantised image: outside of it lies its zero point. */
typedef struct {
    const int8_t *pixels;
    float scale;
    int32_t zero_point;
} thimble_hybrid_image;

/* Copies a window of `depth` channels from `channel` on. */
static inline void thimble_hybrid_gather(const thimble_window_f32 *w,
                                         const thimble_hybrid_image *image,
                                         int32_t top,
                                         int32_t left,
                                         int32_t channel,
                                         int8_t *column)
{
    for (int32_t row = 0; row < w->kernel_h; row++) {
        const int32_t y = top + row * w->dilation_h;
        for (int32_t tap = 0; tap < w->kernel_w; tap++, column += w->depth) {
            const int32_t x = left + tap * w->dilation_w;
            if (y < 0 || y >= w->input_h || x < 0 || x >= w->input_w) {
                (void)memset(column, image->zero_point, (size_t)w->depth);
            } else {
                const int8_t *from = &image->pixels[(y * w->input_w + x) * w->input_c + channel];
                (void)memcpy(column, from, (size_t)w->depth);
            }
        }
    }
}

/* Outputs of `filters` filters, from number `first` on, for one window; returns the parameters that follow.
 */
THIMBLE_EXACT_FLOAT static inline const int32_t *thimble_hybrid_put(const thimble_window_f32 *w,
                                                                    const thimble_hybrid_params *params,
                                                                    const thimble_hybrid_image *image,
                                                                    thimble_sum_four sum_four,
                                                                    const int8_t *column,
                                                                    const int32_t *parameters,
                                                                    const int32_t *taps,
                                                                    const float *scales,
                                                                    const float *bias,
                                                                    int32_t first,
                                                                    int32_t filters,
                                                                    float *output)
{
    const int32_t depth = w->kernel_h * w->kernel_w * w->depth;
    /* The sums of filters begin with their zero points. */
    const int32_t pixels = params->shifted != 0 ? 1 + thimble_sum_s8(column, depth) : 0;
    for (int32_t next = first; next < first + filters; next += 4) {
        const int32_t *const zero_points = parameters;
        int32_t sums[4];
        parameters = sum_four(column, parameters, depth, sums);
        for (int32_t i = next; i < next + 4 && i < first + filters; i++) {
            const int32_t filter_shift = thimble_multiply(-pixels, zero_points[i - next]);
            const int32_t shift = thimble_add(filter_shift, thimble_multiply(-image->zero_point, taps[i]));
            const float sum = (float)thimble_add(sums[i - next], shift);
            const float scale = scales[params->per_channel != 0 ? i : 0];
            const float scaled =
                params->in_turn != 0 ? sum * scale * image->scale : sum * (scale * image->scale);
            const float value = bias != NULL ? scaled + bias[i] : scaled;
            output[i] = thimble_clamp_f32(value, w->min, w->max);
        }
    }
    return parameters;
}

static inline void thimble_hybrid_convolve(const thimble_window_f32 *w,
                                           const thimble_hybrid_params *params,
                                           thimble_sum_four sum_four,
                                           const float *input,
                                           const int32_t *parameters,
                                           const int32_t *taps,
                                           const float *scales,
                                           const float *bias,
                                           void *scratch,
                                           float *output)
{
    const int32_t size = w->input_h * w->input_w * w->input_c;
    const int32_t groups = w->input_c / w->depth;
    const int32_t filters = w->output_c / groups;
    int8_t *const pixels = scratch;
    int8_t *const column = &pixels[(size + 3) / 4 * 4];
    for (int32_t batch = 0; batch < w->batches; batch++) {
        thimble_hybrid_image image = {pixels, 0.0f, 0};
        image.zero_point =
            thimble_quantize_image(params->range, input, w->batches, batch, size, pixels, &image.scale);
        for (int32_t pixel = 0; pixel < w->output_h * w->output_w; pixel++, output += w->output_c) {
            const int32_t top = pixel / w->output_w * w->stride_h - w->pad_top;
            const int32_t left = pixel % w->output_w * w->stride_w - w->pad_left;
            const int32_t *at = parameters;
            for (int32_t group = 0; group < groups; group++) {
                const int8_t *seen = column;
                if (params->gathered != 0) {
                    thimble_hybrid_gather(w, &image, top, left, group * w->depth, column);
                } else {
                    seen = &pixels[(top * w->input_w + left) * w->input_c];
                }
                at = thimble_hybrid_put(w, params, &image, sum_four, seen, at, taps, scales, bias,
                                        group * filters, filters, output);
            }
        }
    }
}

#endif
