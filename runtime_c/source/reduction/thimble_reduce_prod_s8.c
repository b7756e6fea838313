/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int8_t
#define LEAST INT8_MIN
#define MOST INT8_MAX
#define REDUCE_PROD thimble_reduce_prod_s8
#include "thimble_reduce_prod_body.h"
