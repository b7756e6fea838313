/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"

void thimble_add_values_f32(const float *first, const float *second, float *output, int32_t size)
{
    for (int32_t i = 0; i < size; i++) {
        output[i] = first[i] + second[i];
    }
}
