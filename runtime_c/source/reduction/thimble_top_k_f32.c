/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT float
#define TOP_K thimble_top_k_f32
#include "thimble_top_k_body.h"
