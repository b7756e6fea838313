/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"
#include "thimble_wide.h"

/* The EXTREMUM of stored values of ELEMENT, the first where it IS_TAKEN, as TFLite's
 * `MaximumMinimumBroadcastSlow`. */
void EXTREMUM(const ELEMENT *input_1,
              int32_t step_1,
              const ELEMENT *input_2,
              int32_t step_2,
              ELEMENT *output,
              int32_t size)
{
    for (int32_t i = 0; i < size; i++) {
        output[i] = (ELEMENT)(IS_TAKEN(*input_1, *input_2) ? *input_1 : *input_2);
        input_1 += step_1;
        input_2 += step_2;
    }
}
