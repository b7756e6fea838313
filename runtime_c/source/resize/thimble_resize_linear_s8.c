/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_resize_stored.h"

#define ELEMENT int8_t
#define PARAMS thimble_resize_linear_params
#define REAL(x) thimble_resize_real(params, x)
#define STORED(value) thimble_resize_stored(params, value)
#define RESIZE_LINEAR thimble_resize_linear_s8
#include "thimble_resize_linear_body.h"
