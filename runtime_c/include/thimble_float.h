/* SPDX-License-Identifier: Apache-2.0 */
/* int8 kernels that compute in float32, one rounding an operation, as the reference kernels do on a PC. */
#ifndef THIMBLE_FLOAT_H
#define THIMBLE_FLOAT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** real / scale + zero_point, rounded to the nearest integer, halves to even, and saturated to int8 (ONNX
 *  QuantizeLinear). NaN is taken as 0. */
void thimble_quantize_f32_s8_even(
    const float *input, int8_t *output, int32_t size, float scale, int32_t zero_point);

/**
 * One output pixel steps `scale` on the input. A block of a larger image begins at output pixel `begin` of
 * that, and what it is given at input pixel `first`.
 */
typedef struct {
    float scale;
    int32_t begin;
    int32_t first;
} thimble_resize_float_line;

/** An NHWC image and its new size. */
typedef struct {
    int32_t batches;
    int32_t input_height;
    int32_t input_width;
    int32_t output_height;
    int32_t output_width;
    int32_t channels;
    thimble_resize_float_line rows;
    thimble_resize_float_line columns;
    int32_t half_pixel_centers;
} thimble_resize_float_params;

/**
 * Resize of legacy uint8 images by bilinear interpolation in float (TFLite ResizeBilinear<uint8_t>).
 *
 * Values are stored lowered by 128.
 */
void thimble_resize_bilinear_legacy(const thimble_resize_float_params *params,
                                    const int8_t *source,
                                    int8_t *target);

/**
 * An NHWC image and its new size. Each output row lies between two rows of the input, each output column
 * between two columns; the weights say how near.
 */
typedef struct {
    int32_t batches;
    int32_t input_height;
    int32_t input_width;
    int32_t output_height;
    int32_t output_width;
    int32_t channels;
    const int16_t *rows;    /**< two for each output row */
    const int16_t *columns; /**< two for each output column */
    const float *row_weights;
    const float *column_weights;
    float input_scale;
    int32_t input_zero_point;
    float output_scale;
    int32_t output_zero_point;
} thimble_resize_linear_params;

/** Resize by bilinear interpolation of the real values (ONNX Resize, mode linear). */
void thimble_resize_linear_s8(const thimble_resize_linear_params *params,
                              const int8_t *source,
                              int8_t *target);

/** Pixels of channels, a gain and an offset for each channel. */
typedef struct {
    int32_t pixels;
    int32_t channels;
    const float *gain;
    const float *offset;
    float input_scale;
    int32_t input_zero_point;
    float output_scale;
    int32_t output_zero_point;
} thimble_batch_norm_params;

/** x * gain + offset for each channel of NHWC pixels (ONNX BatchNormalization). May write over its input. */
void thimble_batch_norm_s8(const thimble_batch_norm_params *params, const int8_t *source, int8_t *target);

/** Rows to normalise. Gain and offset are in steps of the output. */
typedef struct {
    int32_t rows;
    int32_t length;
    int32_t channels; /**< 0: a gain for each place of a row; else one for each of so many rows in turn */
    float epsilon;    /**< in squared steps of the input */
    int32_t zero_point;
    const float *gain;
    const float *offset;
} thimble_layer_norm_params;

/** (x - mean) / sqrt(variance + epsilon) * gain + offset, row by row. The output may be the input. */
void thimble_layer_norm_s8(const thimble_layer_norm_params *params, const int8_t *source, int8_t *target);

/** Rows of a softmax. An element that is `entries` or more below the largest of its row counts as 0. */
typedef struct {
    int32_t rows;
    int32_t columns;
    int32_t entries;
    const float *exponentials; /**< of 0, -1, -2 and so on steps of the input */
    float scale;               /**< of the output */
    int32_t zero_point;
} thimble_softmax_once_params;

/** exp(x) / sum of exp(x), row by row. The output may be the input. */
void thimble_softmax_once_s8(const thimble_softmax_once_params *params, const int8_t *source, int8_t *target);

#ifdef __cplusplus
}
#endif

#endif
