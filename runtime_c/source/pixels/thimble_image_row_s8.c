/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_image.h"

#include "thimble_saturate.h"

#define WEIGHT_BITS 22
#define GREY_BITS 16

typedef struct {
    int32_t level[3];
} colour;

static inline colour of_words(uint32_t word)
{
    const int32_t red = (int32_t)(word >> 11);
    const int32_t green = (int32_t)((word >> 5) & 63U);
    const int32_t blue = (int32_t)(word & 31U);

    return (colour){{red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2}};
}

static inline colour pixel(int32_t format, const uint8_t *line, int32_t column)
{
    const uint8_t *const three = line + 3 * column;
    const uint8_t *const two = line + 2 * column;

    colour found;

    switch (format) {
    case THIMBLE_RGB888:
        found = (colour){{three[0], three[1], three[2]}};
        break;
    case THIMBLE_BGR888:
        found = (colour){{three[2], three[1], three[0]}};
        break;
    case THIMBLE_RGB565LE:
        found = of_words((uint32_t)two[1] << 8 | two[0]);
        break;
    case THIMBLE_RGB565BE:
        found = of_words((uint32_t)two[0] << 8 | two[1]);
        break;
    default:
        found = (colour){{line[column], line[column], line[column]}};
        break;
    }
    return found;
}

static inline int32_t rounded(int32_t sum)
{
    return thimble_clamp((sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS, 0, UINT8_MAX);
}

/* One pixel of the output's width, from one line of the frame. */
static inline colour across(const thimble_image *image, const uint8_t *line, int32_t column)
{
    const int32_t *const weights = image->columns.weights + column * image->columns.count;
    colour sum = {{0, 0, 0}};

    for (int32_t i = 0; i < image->columns.count; i++) {
        colour one = pixel(image->format, line, image->columns.starts[column] + i);

        if (image->channels == 1 && image->format != THIMBLE_GREY8) {
            one.level[0] = (19595 * one.level[0] + 38470 * one.level[1] + 7471 * one.level[2] +
                            (1 << (GREY_BITS - 1))) >>
                           GREY_BITS;
        }
        for (int32_t c = 0; c < image->channels; c++) {
            sum.level[c] += one.level[c] * weights[i];
        }
    }
    return sum;
}

void thimble_image_row_s8(const thimble_image *image, const uint8_t *frame, int32_t row, int8_t *output)
{
    const int32_t *const weights = image->rows.weights + row * image->rows.count;
    const uint8_t *const first = frame + image->rows.starts[row] * image->line_bytes;

    for (int32_t column = 0; column < image->width; column++) {
        colour sum = {{0, 0, 0}};

        for (int32_t i = 0; i < image->rows.count; i++) {
            const colour one = across(image, first + i * image->line_bytes, column);

            for (int32_t c = 0; c < image->channels; c++) {
                sum.level[c] += rounded(one.level[c]) * weights[i];
            }
        }
        for (int32_t c = 0; c < image->channels; c++) {
            *output++ = image->values[c * 256 + rounded(sum.level[c])];
        }
    }
}
