/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_sum_window.h"

#if THIMBLE_DSP
/* int16 holds the sum of so many int8. */
#define MOST_ELEMENTS 256

static inline uint32_t add_bytes_0_2(uint32_t sums, uint32_t word)
{
    uint32_t result;
    __asm("sxtab16 %0, %1, %2" : "=r"(result) : "r"(sums), "r"(word));
    return result;
}

static inline uint32_t add_bytes_1_3(uint32_t sums, uint32_t word)
{
    uint32_t result;
    __asm("sxtab16 %0, %1, %2, ror #8" : "=r"(result) : "r"(sums), "r"(word));
    return result;
}

static void sum_four(const thimble_window *window, const int8_t *corner, int32_t sums[4])
{
    uint32_t even = 0;
    uint32_t odd = 0;
    int32_t room = MOST_ELEMENTS;

    for (int32_t row = 0; row < window->rows; row++, corner += window->row_stride) {
        const int8_t *element = corner;
        int32_t left = window->columns;
        while (left > 0) {
            int32_t count = left < room ? left : room;
            left -= count;
            room -= count;
            do {
                const uint32_t word = thimble_read_word(element);
                even = add_bytes_0_2(even, word);
                odd = add_bytes_1_3(odd, word);
                element += window->column_stride;
            } while (--count > 0);
            if (room == 0 || (left == 0 && row == window->rows - 1)) {
                sums[0] += thimble_bottom(even);
                sums[1] += thimble_bottom(odd);
                sums[2] += thimble_top(even);
                sums[3] += thimble_top(odd);
                even = 0;
                odd = 0;
                room = MOST_ELEMENTS;
            }
        }
    }
}
#endif

void thimble_sum_window_s8(const thimble_window *window,
                           const int8_t *corner,
                           int32_t channels,
                           int32_t sums[4])
{
    sums[0] = 0;
    sums[1] = 0;
    sums[2] = 0;
    sums[3] = 0;
#if THIMBLE_DSP
    if (channels == 4) {
        sum_four(window, corner, sums);
        return;
    }
#endif
    for (int32_t channel = 0; channel < channels; channel++) {
        for (int32_t row = 0; row < window->rows; row++) {
            const int8_t *element = corner + channel + row * window->row_stride;
            int32_t count = window->columns;
            do {
                sums[channel] += *element;
                element += window->column_stride;
            } while (--count > 0);
        }
    }
}
