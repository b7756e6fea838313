/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"

#define ELEMENT float
#define PARAMS thimble_resize_linear_f32_params
#define REAL(x) (x)
#define STORED(value) (value)
#define RESIZE_LINEAR thimble_resize_linear_f32
#include "thimble_resize_linear_body.h"
