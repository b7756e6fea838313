/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_s8.h"
#include "thimble_sums.h"

void thimble_requantize_sums_s8(int32_t pixels,
                                int32_t channels,
                                int32_t bias,
                                const thimble_requant *requant,
                                const int32_t *sums,
                                const int32_t *parameters,
                                int8_t *output)
{
    const int32_t narrow = thimble_narrow(requant);
    for (; pixels > 0; pixels--) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < channels; channel++, at += 2) {
            const int32_t sum = thimble_add(*sums++, bias);
            if (at[1] >= 0 && !narrow) {
                const int32_t rounding = thimble_rounding(requant, at[1]);
                *output++ = (int8_t)thimble_requantize_fast(sum, at[0], at[1], rounding);
            } else {
                *output++ = thimble_requantize_s8(sum, at[0], at[1], requant);
            }
        }
    }
}
