/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int32_t
#define COMPARE thimble_compare_s32
#include "thimble_compare_body.h"
