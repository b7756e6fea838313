/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT int64_t
#define COMPARE thimble_compare_s64
#include "thimble_compare_body.h"
