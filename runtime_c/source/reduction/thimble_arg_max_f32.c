/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT float
#define ARG_MAX thimble_arg_max_f32
#include "thimble_arg_max_body.h"
