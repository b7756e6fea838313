/* SPDX-License-Identifier: Apache-2.0 */
/* What stored int8 pixels of RESIZE_LINEAR stand for, and how its results are stored. */
#ifndef THIMBLE_RESIZE_STORED_H
#define THIMBLE_RESIZE_STORED_H

#include "thimble_exact_float.h"
#include "thimble_float.h"

THIMBLE_EXACT_FLOAT static inline float thimble_resize_real(const thimble_resize_linear_params *params,
                                                            int8_t stored)
{
    return (float)(stored - params->input_zero_point) * params->input_scale;
}

THIMBLE_EXACT_FLOAT static inline int8_t thimble_resize_stored(const thimble_resize_linear_params *params,
                                                               float value)
{
    const int32_t whole = thimble_nearest(value / params->output_scale) + params->output_zero_point;
    return (int8_t)(whole < INT8_MIN ? INT8_MIN : whole > INT8_MAX ? INT8_MAX : whole);
}

#endif
