/* SPDX-License-Identifier: Apache-2.0 */
#define SOURCE int16_t
#define TARGET int16_t
#define REQUANTIZE thimble_requantize_s16_s16
#include "thimble_requantize_body.h"
