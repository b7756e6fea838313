#include "thimble_conv.h"

/* Products of pixel less zero point and weight; `negated` holds the zero point twice, with its sign turned.
 */
static int32_t dot(const int8_t *pixel, const int8_t *weights, int32_t depth, uint32_t negated)
{
    int32_t sum = 0;
    for (; depth >= 4; depth -= 4, pixel += 4, weights += 4) {
        const uint32_t values = thimble_read_word(pixel), factors = thimble_read_word(weights);
        const uint32_t even = thimble_sxtb16(factors), odd = thimble_sxtb16_ror8(factors);
        sum = thimble_smlad(thimble_sxtb16(values), even, sum);
        sum = thimble_smlad(thimble_sxtb16_ror8(values), odd, sum);
        sum = thimble_smlad(negated, even, sum);
        sum = thimble_smlad(negated, odd, sum);
    }
    for (; depth > 0; depth--) {
        sum += (*pixel++ + thimble_bottom(negated)) * *weights++;
    }
    return sum;
}

/* What one filter sees of the image when its first tap lies at row y, column x. */
static uint32_t
sum_window(const thimble_conv_shape *shape, const int8_t *input, const int8_t *weights, int32_t y, int32_t x)
{
    const int32_t depth = shape->depth;
    const uint32_t zero_point = (uint32_t)-shape->input_zero_point;
    const uint32_t negated = (zero_point << 16) | (zero_point & 0xFFFFU);
    uint32_t sum = 0;
    for (int32_t row = 0; row < shape->kernel_h; row++, y += shape->dilation_h) {
        if (y < 0 || y >= shape->input_h) {
            weights += shape->kernel_w * depth;
            continue;
        }
        int32_t at = x;
        for (int32_t column = 0; column < shape->kernel_w; column++, at += shape->dilation_w) {
            if (at >= 0 && at < shape->input_w) {
                const int8_t *const pixel = input + (y * shape->input_w + at) * depth;
                sum += (uint32_t)dot(pixel, weights, depth, negated);
            }
            weights += depth;
        }
    }
    return sum;
}

void thimble_partial_conv_s8(const thimble_conv_shape *shape,
                             const int8_t *input,
                             const int8_t *weights,
                             const int32_t *bias,
                             const int32_t *sums,
                             int32_t *output)
{
    const int32_t filter = shape->kernel_h * shape->kernel_w * shape->depth;
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        for (int32_t row = 0; row < shape->output_h; row++) {
            for (int32_t column = 0; column < shape->output_w; column++) {
                const int32_t y = row * shape->stride_h - shape->pad_top;
                const int32_t x = column * shape->stride_w - shape->pad_left;
                for (int32_t channel = 0; channel < shape->output_c; channel++) {
                    uint32_t sum = bias ? (uint32_t)bias[channel] : 0U;
                    sum += sums ? (uint32_t)*sums++ : 0U;
                    sum += sum_window(shape, input, weights + channel * filter, y, x);
                    *output++ = (int32_t)sum;
                }
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
    }
}
