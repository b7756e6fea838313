#include "thimble_conv.h"

static uint32_t dot(const int8_t *pixel, const int8_t *weights, int32_t depth, int32_t zero_point)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < depth; i++) {
        sum += (pixel[i] - zero_point) * weights[i];
    }
    return (uint32_t)sum;
}

/* What one filter sees of the image when its first tap lies at row y, column x. */
static uint32_t
sum_window(const thimble_conv_shape *shape, const int8_t *input, const int8_t *weights, int32_t y, int32_t x)
{
    const int32_t depth = shape->depth;
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
                sum += dot(pixel, weights, depth, shape->input_zero_point);
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
