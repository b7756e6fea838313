/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT uint8_t
#define COMPARE thimble_compare_u8
#include "thimble_compare_body.h"
