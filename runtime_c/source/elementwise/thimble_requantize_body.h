/* SPDX-License-Identifier: Apache-2.0 */
/* REQUANTIZE of SOURCE to TARGET: integers from one scale to another. */
#include "thimble_requantized.h"

void REQUANTIZE(const SOURCE *input, TARGET *output, int32_t size, const thimble_requantize_params *params)
{
    const thimble_requantize_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        output[i] = (TARGET)thimble_requantized(input[i], &p);
    }
}
