/* SPDX-License-Identifier: Apache-2.0 */
/* A whole image held within an activation. */
#ifndef THIMBLE_CLAMP_IMAGE_H
#define THIMBLE_CLAMP_IMAGE_H

#include "thimble_conv.h"

/* Where the activation is narrower than int8's own range, holds the output image within it, four values at a
 * time: kernels whose sums end within int8's own range call this last. */
void thimble_clamp_image_s8(const thimble_conv_shape *shape, const thimble_requant *requant, int8_t *output);

#endif
