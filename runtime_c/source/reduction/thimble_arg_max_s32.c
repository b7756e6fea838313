/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int32_t
#define ARG_MAX thimble_arg_max_s32
#include "thimble_arg_max_body.h"
