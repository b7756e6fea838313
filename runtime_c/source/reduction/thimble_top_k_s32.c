/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int32_t
#define TOP_K thimble_top_k_s32
#include "thimble_top_k_body.h"
