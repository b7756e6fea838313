/* SPDX-License-Identifier: Apache-2.0 */
#define OFFSET(input, depth) 0
#define SUM_UNITS(input, at, depth, offset, sums) thimble_sum_units_s8(input, at, depth, sums)
#define FULLY_CONNECTED thimble_fully_connected_s8
#include "thimble_fully_connected_body.h"
