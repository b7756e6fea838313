/* SPDX-License-Identifier: Apache-2.0 */
#define OFFSET(input, depth) (-8 * thimble_sum_s8(input, depth))
#define SUM_UNITS(input, at, depth, offset, sums) thimble_sum_units_lanes_s4(input, at, depth, offset, sums)
#define FULLY_CONNECTED thimble_fully_connected_lanes_s4
#include "thimble_fully_connected_body.h"
