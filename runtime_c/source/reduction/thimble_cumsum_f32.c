/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT float
#define ADDED(a, b) ((a) + (b))
#define CUMSUM thimble_cumsum_f32
#include "thimble_cumsum_body.h"
