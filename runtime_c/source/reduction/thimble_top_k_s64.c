/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int64_t
#define TOP_K thimble_top_k_s64
#include "thimble_top_k_body.h"
