/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int8_t
#define LEAST INT8_MIN
#define REDUCE_MAX thimble_reduce_max_s8
#include "thimble_reduce_max_body.h"
