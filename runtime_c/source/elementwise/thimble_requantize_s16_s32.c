/* SPDX-License-Identifier: Apache-2.0 */
#define SOURCE int16_t
#define TARGET int32_t
#define REQUANTIZE thimble_requantize_s16_s32
#include "thimble_requantize_body.h"
