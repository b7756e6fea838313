/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_lanes.h"

#include <stddef.h>

#define ONE (1 << THIMBLE_BILINEAR_BITS)

/* Two neighbours of a place on a line, and what the second weighs in parts of ONE. */
typedef struct {
    int32_t lower;
    int32_t upper;
    int32_t weight;
} neighbours;

static neighbours around(int32_t place, int32_t size)
{
    neighbours found;

    found.lower = place < 0 ? 0 : place >> THIMBLE_BILINEAR_BITS;
    found.lower = found.lower < size ? found.lower : size - 1;
    found.upper = place < 0 ? 0 : (place + ONE - 1) >> THIMBLE_BILINEAR_BITS;
    found.upper = found.upper < size ? found.upper : size - 1;
    found.weight = place - found.lower * ONE;
    return found;
}

/* The same channel of four pixels. */
typedef struct {
    const int8_t *top_left, *top_right, *bottom_left, *bottom_right;
} corners;

/* Sums in parts of ONE * ONE, halves away from zero. */
static inline void put_pixel(const corners *from, const int32_t *weights, int32_t channels, int8_t *to)
{
#if THIMBLE_MVE
    for (int32_t c = 0; c < channels; c += 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)(channels - c));
        int32x4_t sum = vmulq_n_s32(vldrbq_z_s32(from->top_left + c, lanes), weights[0]);
        sum = vmlaq_n_s32(sum, vldrbq_z_s32(from->top_right + c, lanes), weights[1]);
        sum = vmlaq_n_s32(sum, vldrbq_z_s32(from->bottom_left + c, lanes), weights[2]);
        sum = vmlaq_n_s32(sum, vldrbq_z_s32(from->bottom_right + c, lanes), weights[3]);
        sum = vaddq_s32(sum, vshrq_n_s32(sum, 31));
        vstrbq_p_s32(to + c, vrshrq_n_s32(sum, 2 * THIMBLE_BILINEAR_BITS), lanes);
    }
#else
    for (int32_t c = 0; c < channels; c++) {
        const int32_t sum = from->top_left[c] * weights[0] + from->top_right[c] * weights[1] +
                            from->bottom_left[c] * weights[2] + from->bottom_right[c] * weights[3];
        const int32_t half = sum > 0 ? ONE * ONE / 2 : -(ONE * ONE / 2);
        to[c] = (int8_t)((sum + half) / (ONE * ONE));
    }
#endif
}

void thimble_resize_bilinear_s8(const thimble_resize_bilinear_params *params,
                                const int8_t *source,
                                int8_t *target)
{
    const int32_t channels = params->channels;
    const ptrdiff_t row = (ptrdiff_t)channels * params->input_width;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        int32_t place_y = params->rows.start;
        for (int32_t i = 0; i < params->output_height; i++, place_y += params->rows.step) {
            const neighbours y = around(place_y, params->input_height);
            const int8_t *top = source + y.lower * row;
            const int8_t *bottom = source + y.upper * row;
            int32_t place_x = params->columns.start;
            for (int32_t j = 0; j < params->output_width; j++, place_x += params->columns.step) {
                const neighbours x = around(place_x, params->input_width);
                const ptrdiff_t left = (ptrdiff_t)x.lower * channels;
                const ptrdiff_t right = (ptrdiff_t)x.upper * channels;
                const corners from = {top + left, top + right, bottom + left, bottom + right};
                const int32_t weights[4] = {(ONE - y.weight) * (ONE - x.weight), (ONE - y.weight) * x.weight,
                                            y.weight * (ONE - x.weight), y.weight * x.weight};
                put_pixel(&from, weights, channels, target);
                target += channels;
            }
        }
        source += row * params->input_height;
    }
}
