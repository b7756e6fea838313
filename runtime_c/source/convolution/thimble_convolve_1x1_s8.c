/* SPDX-License-Identifier: Apache-2.0 */
#define CONVOLVE_INSIDE thimble_convolve_inside_s8
#define CONVOLVE_1X1 thimble_convolve_1x1_s8
#include "thimble_convolve_1x1_body.h"
