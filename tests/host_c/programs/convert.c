/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header's conversions: reads float32 values, writes what the input's helper makes of each, then
 * what the output's helper makes of every int8.
 */
#include <stdio.h>

#include "converted.h"

int main(void)
{
    float real;

    while (fread(&real, sizeof(real), 1, stdin) == 1) {
        const int8_t stored = converted_input_x_quantize(real);

        fwrite(&stored, 1, 1, stdout);
    }
    for (int32_t i = INT8_MIN; i <= INT8_MAX; i++) {
        real = converted_output_y_dequantize((int8_t)i);
        fwrite(&real, sizeof(real), 1, stdout);
    }
#ifdef WITH_UINT8
    for (int32_t i = 0; i <= UINT8_MAX; i++) {
        const int8_t stored = converted_input_x_from_uint8((uint8_t)i);
        const uint8_t back = converted_output_y_to_uint8(stored);

        fwrite(&stored, 1, 1, stdout);
        fwrite(&back, 1, 1, stdout);
    }
#endif
    return 0;
}
