/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns_s4.h"
#include "thimble_requantize_s8.h"

void thimble_put_block_s4(const int32_t *sums,
                          const int32_t *scaling,
                          int32_t count,
                          const thimble_requant *requant,
                          int8_t *output)
{
    const int32_t ends = scaling[9];
    const int32_t once = ends == THIMBLE_ENDS_ONCE || ends == THIMBLE_ENDS_PART_ONCE;
    uint32_t codes = (uint32_t)scaling[8];
    for (int32_t i = 0; i < count; i++, codes >>= 8) {
        const int32_t sum = sums[i], multiplier = scaling[i], rounding = scaling[4 + i];
        const int32_t code = (int8_t)(uint8_t)codes;
        if (once != 0) {
            output[i] = (int8_t)thimble_requantize_merged_fast(sum, multiplier, code, rounding);
        } else if (code >= 0) {
            const int32_t value = thimble_requantize_fast(sum, multiplier, code, rounding);
            output[i] = (int8_t)thimble_clamp_sum(value, requant->activation_min, requant->activation_max);
        } else {
            output[i] = thimble_requantize_s8(sum, multiplier, code, requant);
        }
    }
}
