#include "thimble_conv.h"

/* Outputs of up to four units. */
static int8_t *put_units(const int32_t *sums,
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

void thimble_fully_connected_s8(int32_t rows,
                                int32_t depth,
                                int32_t units,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                const int32_t *common,
                                int8_t *output)
{
    for (int32_t row = 0; row < rows; row++) {
        const int32_t *at = parameters;
        for (int32_t left = units; left > 0; left -= 4) {
            int32_t sums[4];
            at = thimble_sum_units_s8(input, at, depth, sums);
            output = put_units(sums, common ? common : at, left < 4 ? left : 4, requant, output);
            at += common ? 0 : 9;
        }
        input += depth;
    }
}
