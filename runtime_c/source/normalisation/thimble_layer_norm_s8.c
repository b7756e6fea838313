/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_float.h"
#include "thimble_saturate.h"

#include <string.h>

/* 1 / sqrt(x) by Newton's iteration: no library function, the same bits everywhere. */
THIMBLE_EXACT_FLOAT static float inverse_root(float x)
{
    uint32_t bits;
    float y;

    (void)memcpy(&bits, &x, sizeof(bits));
    bits = 0x5F3759DFU - (bits >> 1);
    (void)memcpy(&y, &bits, sizeof(y));
    for (int32_t i = 0; i < 4; i++) {
        y = y * (1.5f - 0.5f * x * y * y);
    }
    return y;
}

THIMBLE_EXACT_FLOAT void
thimble_layer_norm_s8(const thimble_layer_norm_params *params, const int8_t *source, int8_t *target)
{
    const int32_t length = params->length;
    const float count = (float)length;

    for (int32_t row = 0; row < params->rows; row++) {
        int32_t sum = 0;
        int64_t squares = 0;
        for (int32_t i = 0; i < length; i++) {
            sum += source[i];
            squares += source[i] * source[i];
        }
        const float spread = (float)(length * squares - (int64_t)sum * sum);
        const float variance = spread / (count * count) + params->epsilon;
        const float inverse = inverse_root(variance > 1e-20f ? variance : 1e-20f) / count;
        for (int32_t i = 0; i < length; i++) {
            const float centred = (float)(length * source[i] - sum);
            const int32_t at = params->channels ? row % params->channels : i;
            const float value = centred * inverse * params->gain[at] + params->offset[at];
            target[i] =
                (int8_t)thimble_clamp(thimble_nearest(value) + params->zero_point, INT8_MIN, INT8_MAX);
        }
        source += length;
        target += length;
    }
}
