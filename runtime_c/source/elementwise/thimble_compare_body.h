/* SPDX-License-Identifier: Apache-2.0 */
/* COMPARE of ELEMENT: whether a relation holds between stored values. */
#include "thimble_choice.h"

void COMPARE(const ELEMENT *input_1,
             int32_t step_1,
             const ELEMENT *input_2,
             int32_t step_2,
             uint8_t *output,
             int32_t size,
             const thimble_relation_params *params)
{
    const int32_t relation = params->relation;

    for (int32_t i = 0; i < size; i++) {
        const ELEMENT a = *input_1;
        const ELEMENT b = *input_2;
        const int32_t place = 1 + (a > b) - (a < b);
        output[i] = (uint8_t)((relation >> place) & 1);
        input_1 += step_1;
        input_2 += step_2;
    }
}
