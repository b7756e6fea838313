/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_cast.h"

void thimble_cast(const void *input, int32_t input_bytes, int32_t count, void *output, int32_t output_bytes)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t value;

        if (input_bytes == 1) {
            value = ((const int8_t *)input)[i];
        } else if (input_bytes == 2) {
            value = ((const int16_t *)input)[i];
        } else {
            value = ((const int32_t *)input)[i];
        }
        if (output_bytes == 1) {
            ((int8_t *)output)[i] = (int8_t)value;
        } else if (output_bytes == 2) {
            ((int16_t *)output)[i] = (int16_t)value;
        } else {
            ((int32_t *)output)[i] = value;
        }
    }
}
