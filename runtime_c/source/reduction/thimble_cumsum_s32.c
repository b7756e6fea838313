/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int32_t
#define ADDED(a, b) (int32_t)((uint32_t)(a) + (uint32_t)(b))
#define CUMSUM thimble_cumsum_s32
#include "thimble_cumsum_body.h"
