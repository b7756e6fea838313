/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"

void thimble_add_values_s32(const int32_t *first, const int32_t *second, int32_t *output, int32_t size)
{
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int32_t)((uint32_t)first[i] + (uint32_t)second[i]);
    }
}
