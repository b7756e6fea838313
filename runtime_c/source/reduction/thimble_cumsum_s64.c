/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int64_t
#define ADDED(a, b) (int64_t)((uint64_t)(a) + (uint64_t)(b))
#define CUMSUM thimble_cumsum_s64
#include "thimble_cumsum_body.h"
