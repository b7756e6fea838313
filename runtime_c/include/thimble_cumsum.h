/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums along an axis of a tensor seen as [outer][count][inner]; in place. */
#ifndef THIMBLE_CUMSUM_H
#define THIMBLE_CUMSUM_H

#include <stdint.h>

/** `exclusive`: a sum leaves out its own element; `reverse`: from the last one on. */
typedef struct {
    int32_t outer;
    int32_t count;
    int32_t inner;
    int32_t exclusive;
    int32_t reverse;
} thimble_cumsum_params;

void thimble_cumsum_f32(const thimble_cumsum_params *params, const float *input, float *output);

/** Sums wrap. */
void thimble_cumsum_s32(const thimble_cumsum_params *params, const int32_t *input, int32_t *output);

#endif
