/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int16_t
#define IS_TAKEN(first, second) ((first) > (second))
#define EXTREMUM thimble_maximum_s16
#include "thimble_extremum_body.h"
