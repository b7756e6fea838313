/* SPDX-License-Identifier: Apache-2.0 */
#define CONVOLVE_INSIDE thimble_convolve_inside_s4
#define CONVOLVE_1X1 thimble_convolve_1x1_s4
#include "thimble_convolve_1x1_body.h"
