/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int32_t
#define ADDED(a, b) (int32_t)((uint32_t)(a) + (uint32_t)(b))
#define SCATTER_ND thimble_scatter_nd_s32
#include "thimble_scatter_nd_body.h"
