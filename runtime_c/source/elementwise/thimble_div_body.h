/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_quotient.h"

/*
 * The quotient of two operands less their zero points. A division by zero saturates towards
 * the dividend's sign: to FAR, beyond all values.
 */
void DIV(const ELEMENT *input_1,
         int32_t step_1,
         const ELEMENT *input_2,
         int32_t step_2,
         ELEMENT *output,
         int32_t size,
         const thimble_div_params *params)
{
    const thimble_div_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        int32_t dividend = *input_1 + p.offset_1;
        int32_t divisor = *input_2 + p.offset_2;
        if (divisor < 0) {
            dividend = -dividend;
            divisor = -divisor;
        }
        int32_t result = dividend == 0 ? 0 : dividend > 0 ? FAR : -FAR;
        if (divisor != 0) {
            result = thimble_quotient(dividend, divisor, &p);
        }
        const int64_t sum = (int64_t)result + p.output_offset;
        output[i] = (ELEMENT)(sum < p.min ? p.min : sum > p.max ? p.max : sum);
        input_1 += step_1;
        input_2 += step_2;
    }
}
