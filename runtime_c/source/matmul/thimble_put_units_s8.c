/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_s8.h"
#include "thimble_units.h"

int8_t *thimble_put_units_s8(const int32_t *sums,
                             const int32_t *scaling,
                             int32_t count,
                             const thimble_requant *requant,
                             int8_t *output)
{
    uint32_t codes = (uint32_t)scaling[8];
    if (count == 4 && (codes & 0x80808080U) == 0 && !thimble_narrow(requant)) {
        const int32_t twice = 2 * requant->output_offset + 1;
        for (const int32_t *const end = sums + 4; sums != end; codes >>= 8) {
            const int32_t code = (int32_t)(codes & 0xFFU);
            const int32_t rounding = (int32_t)((uint32_t)twice << code);
            *output++ = (int8_t)thimble_requantize_once_fast(*sums++, *scaling++, code, rounding);
        }
        return output;
    }
    for (int32_t i = 0; i < count; i++, codes >>= 8) {
        const int32_t code = (int8_t)(uint8_t)codes;
        *output++ = thimble_requantize_once_s8(sums[i], scaling[i], scaling[4 + i], code, requant);
    }
    return output;
}
