/* SPDX-License-Identifier: Apache-2.0 */
/** @file Real values to quantized ones. */
#ifndef THIMBLE_QUANTIZE_H
#define THIMBLE_QUANTIZE_H

#include <stdint.h>

/** TFLite `AffineQuantize`, saturating where the quotient leaves int32; halves away from zero, NaN to zero.
 */
static inline int32_t
thimble_quantize(float real, float scale, int32_t zero_point, int32_t lowest, int32_t highest)
{
    const int32_t min = lowest - zero_point;
    const int32_t max = highest - zero_point;
    const float quotient = real / scale;
    int32_t rounded;
    if (quotient > (float)min && quotient < (float)max) {
        const int32_t whole = (int32_t)quotient;
        const float rest = quotient - (float)whole;
        rounded = whole + (rest >= 0.5f) - (rest <= -0.5f);
    } else if (quotient >= (float)max) {
        rounded = max;
    } else if (quotient <= (float)min) {
        rounded = min;
    } else {
        rounded = 0; /* not a number */
    }
    return rounded + zero_point;
}

#endif
