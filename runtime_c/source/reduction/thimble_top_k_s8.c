/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int8_t
#define TOP_K thimble_top_k_s8
#include "thimble_top_k_body.h"
