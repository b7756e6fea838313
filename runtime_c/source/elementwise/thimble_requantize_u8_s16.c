/* SPDX-License-Identifier: Apache-2.0 */
#define SOURCE uint8_t
#define TARGET int16_t
#define REQUANTIZE thimble_requantize_u8_s16
#include "thimble_requantize_body.h"
