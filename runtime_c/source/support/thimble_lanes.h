/* SPDX-License-Identifier: Apache-2.0 */
/* Helium: sixteen int8 lanes of a vector register. Kernels that are laid out for it have a portable form. */
#ifndef THIMBLE_LANES_H
#define THIMBLE_LANES_H

#include "thimble_dsp.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include <arm_mve.h>
#define THIMBLE_MVE 1
#else
#define THIMBLE_MVE 0
#endif

#define THIMBLE_LANES 16

#endif
