/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int16_t
#define TOP_K thimble_top_k_s16
#include "thimble_top_k_body.h"
