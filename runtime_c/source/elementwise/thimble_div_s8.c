/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int8_t
#define FAR 512
#define DIV thimble_div_s8
#include "thimble_div_body.h"
