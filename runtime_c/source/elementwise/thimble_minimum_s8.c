/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int8_t
#define IS_TAKEN(first, second) ((first) < (second))
#define EXTREMUM thimble_minimum_s8
#include "thimble_extremum_body.h"
