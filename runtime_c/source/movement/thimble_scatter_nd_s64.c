/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int64_t
#define ADDED(a, b) (int64_t)((uint64_t)(a) + (uint64_t)(b))
#define SCATTER_ND thimble_scatter_nd_s64
#include "thimble_scatter_nd_body.h"
