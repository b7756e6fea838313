/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int16_t
#define COMPARE thimble_compare_s16
#include "thimble_compare_body.h"
