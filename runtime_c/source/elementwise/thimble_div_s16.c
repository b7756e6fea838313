/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int16_t
#define FAR 131072
#define DIV thimble_div_s16
#include "thimble_div_body.h"
