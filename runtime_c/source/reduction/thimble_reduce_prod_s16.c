/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int16_t
#define LEAST INT16_MIN
#define MOST INT16_MAX
#define REDUCE_PROD thimble_reduce_prod_s16
#include "thimble_reduce_prod_body.h"
