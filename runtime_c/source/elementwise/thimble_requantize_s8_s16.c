/* SPDX-License-Identifier: Apache-2.0 */
#define SOURCE int8_t
#define TARGET int16_t
#define REQUANTIZE thimble_requantize_s8_s16
#include "thimble_requantize_body.h"
