/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_s8.h"
#include "thimble_sums.h"

void thimble_average_sums_s8(int32_t elements,
                             int32_t bias,
                             int32_t count,
                             int32_t even,
                             const thimble_requant *requant,
                             const int32_t *sums,
                             int8_t *output)
{
    const int32_t low = requant->activation_min - requant->output_offset;
    const int32_t high = requant->activation_max - requant->output_offset;
    for (; elements > 0; elements--) {
        const int32_t sum = thimble_add(*sums++, bias);
        const int32_t rest = sum % count, magnitude = rest < 0 ? -rest : rest;
        int32_t quotient = sum / count;
        const int32_t half = magnitude == count - magnitude;
        if (half ? !even || (quotient & 1) : magnitude > count - magnitude) {
            quotient += sum < 0 ? -1 : 1;
        }
        *output++ = (int8_t)(thimble_clamp_sum(quotient, low, high) + requant->output_offset);
    }
}
