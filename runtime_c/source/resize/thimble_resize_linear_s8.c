/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_float.h"

THIMBLE_EXACT_FLOAT static float real(const thimble_resize_linear_params *params, int8_t stored)
{
    return (float)(stored - params->input_zero_point) * params->input_scale;
}

THIMBLE_EXACT_FLOAT static int8_t stored(const thimble_resize_linear_params *params, float value)
{
    const int32_t whole = thimble_nearest(value / params->output_scale) + params->output_zero_point;
    return (int8_t)(whole < INT8_MIN ? INT8_MIN : whole > INT8_MAX ? INT8_MAX : whole);
}

#define ELEMENT int8_t
#define PARAMS thimble_resize_linear_params
#define REAL(x) real(params, x)
#define STORED(value) stored(params, value)
#define RESIZE_LINEAR thimble_resize_linear_s8
#include "thimble_resize_linear_body.h"
