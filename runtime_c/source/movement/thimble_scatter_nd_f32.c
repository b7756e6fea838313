/* SPDX-License-Identifier: Apache-2.0 */
#define ELEMENT float
#define ADDED(a, b) ((a) + (b))
#define SCATTER_ND thimble_scatter_nd_f32
#include "thimble_scatter_nd_body.h"
