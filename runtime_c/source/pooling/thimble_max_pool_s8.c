/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_pool.h"
#include "thimble_sum_window.h"

/* The larger of each pair of bytes. */
static inline uint32_t larger(uint32_t a, uint32_t b)
{
#if THIMBLE_DSP
    uint32_t result;
    __asm("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b) : "cc");
    return result;
#else
    uint32_t result = 0;
    for (int32_t shift = 0; shift < 32; shift += 8) {
        const int8_t first = (int8_t)(uint8_t)(a >> shift);
        const int8_t second = (int8_t)(uint8_t)(b >> shift);
        result |= (uint32_t)(uint8_t)(first > second ? first : second) << shift;
    }
    return result;
#endif
}

/* The smaller of each pair of bytes: complementing turns the order round. */
static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    return ~larger(~a, ~b);
}

static inline uint32_t four_times(int32_t value)
{
    return (uint32_t)(uint8_t)value * 0x01010101U;
}

/* Sixteen channels at once keep the walk over the window short for each. */
static void largest_sixteen(const thimble_window *window, const int8_t *corner, uint32_t best[4])
{
    uint32_t a = best[0];
    uint32_t b = a;
    uint32_t c = a;
    uint32_t d = a;

    for (int32_t row = window->rows; row > 0; row--, corner += window->row_stride) {
        const int8_t *element = corner;
        int32_t count = window->columns;
        do {
            a = larger(a, thimble_read_word(element));
            b = larger(b, thimble_read_word(element + 4));
            c = larger(c, thimble_read_word(element + 8));
            d = larger(d, thimble_read_word(element + 12));
            element += window->column_stride;
        } while (--count > 0);
    }
    best[0] = a;
    best[1] = b;
    best[2] = c;
    best[3] = d;
}

static uint32_t largest_four(const thimble_window *window, const int8_t *corner, uint32_t best)
{
    for (int32_t row = window->rows; row > 0; row--, corner += window->row_stride) {
        const int8_t *element = corner;
        int32_t count = window->columns;
        do {
            best = larger(best, thimble_read_word(element));
            element += window->column_stride;
        } while (--count > 0);
    }
    return best;
}

static int8_t largest(const thimble_window *window, const int8_t *corner)
{
    int8_t best = INT8_MIN;

    for (int32_t row = window->rows; row > 0; row--, corner += window->row_stride) {
        const int8_t *element = corner;
        for (int32_t count = window->columns; count > 0; count--, element += window->column_stride) {
            best = (int8_t)(*element > best ? *element : best);
        }
    }
    return best;
}

static void pool_pixel(const thimble_window *window,
                       const int8_t *corner,
                       const thimble_pool_params *params,
                       int8_t *output)
{
    int32_t channels = params->channels;
    const uint32_t low = four_times(params->min);
    const uint32_t high = four_times(params->max);

    for (; channels >= 16; channels -= 16, corner += 16, output += 16) {
        uint32_t words[4] = {low};
        largest_sixteen(window, corner, words);
        for (int32_t i = 0; i < 4; i++) {
            words[i] = smaller(words[i], high);
        }
        (void)memcpy(output, words, 16);
    }
    for (; channels >= 4; channels -= 4, corner += 4, output += 4) {
        const uint32_t word = smaller(largest_four(window, corner, low), high);
        (void)memcpy(output, &word, 4);
    }
    for (; channels > 0; channels--, corner++, output++) {
        const int32_t value = largest(window, corner);
        const int32_t raised = value < params->min ? params->min : value;
        *output = (int8_t)(raised > params->max ? params->max : raised);
    }
}

void thimble_max_pool_s8(const thimble_pool_params *params, const int8_t *input, int8_t *output)
{
    const ptrdiff_t pixel = params->channels;
    thimble_window window = {.row_stride = pixel * params->input_w, .column_stride = pixel};

    for (int32_t batch = 0; batch < params->batches; batch++, input += window.row_stride * params->input_h) {
        for (int32_t row = 0; row < params->output_h; row++) {
            const int32_t y = row * params->stride_h - params->pad_top;
            const int32_t top = y < 0 ? 0 : y;
            const int32_t end = y + params->kernel_h;
            window.rows = (end < params->input_h ? end : params->input_h) - top;
            for (int32_t column = 0; column < params->output_w; column++, output += pixel) {
                const int32_t x = column * params->stride_w - params->pad_left;
                const int32_t left = x < 0 ? 0 : x;
                const int32_t right = x + params->kernel_w;
                window.columns = (right < params->input_w ? right : params->input_w) - left;
                pool_pixel(&window, input + top * window.row_stride + left * pixel, params, output);
            }
        }
    }
}
