#include "thimble_conv.h"

void thimble_requantise_sums_s8(int32_t pixels,
                                int32_t channels,
                                const thimble_requant *requant,
                                const int32_t *sums,
                                const int32_t *parameters,
                                int8_t *output)
{
    for (; pixels > 0; pixels--) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < channels; channel++, at += 2) {
            *output++ = thimble_requantize_s8(*sums++, at[0], at[1], requant);
        }
    }
}
