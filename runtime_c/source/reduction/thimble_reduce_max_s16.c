/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int16_t
#define LEAST INT16_MIN
#define REDUCE_MAX thimble_reduce_max_s16
#include "thimble_reduce_max_body.h"
