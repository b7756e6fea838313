/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic in float, one rounding an operation. */
#ifndef THIMBLE_EXACT_FLOAT_H
#define THIMBLE_EXACT_FLOAT_H

#include <stdint.h>

/* A product and a sum stay two roundings, also where the core has a fused multiply-add. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define THIMBLE_EXACT_FLOAT
#elif defined(__GNUC__)
#define THIMBLE_EXACT_FLOAT __attribute__((optimize("fp-contract=off")))
#else
#define THIMBLE_EXACT_FLOAT
#endif

/* To the nearest integer, halves to even; what lies far outside int8 stays there. */
THIMBLE_EXACT_FLOAT static inline int32_t thimble_nearest(float x)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: what is added to it loses its fraction */
    const float near = x < -1024.0f ? -1024.0f : x > 1024.0f ? 1024.0f : x;
    const float whole = near + round;
    return (int32_t)(whole - round);
}

#endif
