/* SPDX-License-Identifier: Apache-2.0 */
/* One integer from its scale to another. */
#ifndef THIMBLE_REQUANTIZED_H
#define THIMBLE_REQUANTIZED_H

#include "thimble_multiplier.h"
#include "thimble_requantize.h"

/* One value; sums of int32 wrap. */
static inline int32_t thimble_requantized(int32_t x, const thimble_requantize_params *p)
{
    const int32_t centred = thimble_moved(x, p->input_offset);
    const int32_t scaled = thimble_scaled(centred, p->multiplier, p->shift);
    const int32_t moved = thimble_moved(scaled, p->output_offset);
    return moved < p->min ? p->min : moved > p->max ? p->max : moved;
}

#endif
