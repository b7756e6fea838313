/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header's conversions: reads float32 values, writes what the input's helper makes of each, then
 * what the output's helper makes of every int8. Ends with 1 where those of whole tensors differ.
 */
#include <stdio.h>

#include "converted.h"

static uint8_t arena[CONVERTED_ARENA_BYTES] __attribute__((aligned(CONVERTED_ARENA_ALIGNMENT)));

int main(void)
{
    int8_t *const input = converted_input_x(arena);
    int8_t *const output = (int8_t *)(uintptr_t)converted_output_y(arena);
    float real;

    while (fread(&real, sizeof(real), 1, stdin) == 1) {
        const int8_t stored = converted_input_x_quantize(real);

        const float reals[CONVERTED_INPUT_X_ELEMENTS] = {real, 0.0f, -real};

        fwrite(&stored, 1, 1, stdout);
        converted_input_x_quantize_all(arena, reals);
        for (int32_t i = 0; i < CONVERTED_INPUT_X_ELEMENTS; i++) {
            if (input[i] != converted_input_x_quantize(reals[i])) {
                return 1;
            }
        }
    }
    for (int32_t i = INT8_MIN; i <= INT8_MAX; i++) {
        real = converted_output_y_dequantize((int8_t)i);
        fwrite(&real, sizeof(real), 1, stdout);
        float reals[CONVERTED_OUTPUT_Y_ELEMENTS] = {0};

        output[0] = 0;
        output[1] = (int8_t)i;
        converted_output_y_dequantize_all(arena, reals);
        if (reals[0] != converted_output_y_dequantize(0) || reals[1] != real) {
            return 1;
        }
    }
#ifdef WITH_UINT8
    for (int32_t i = 0; i <= UINT8_MAX; i++) {
        const int8_t stored = converted_input_x_from_uint8((uint8_t)i);
        const uint8_t back = converted_output_y_to_uint8(stored);

        fwrite(&stored, 1, 1, stdout);
        fwrite(&back, 1, 1, stdout);
        const uint8_t values[CONVERTED_INPUT_X_ELEMENTS] = {0, 1, (uint8_t)i};
        uint8_t backs[CONVERTED_OUTPUT_Y_ELEMENTS] = {0};

        converted_input_x_from_uint8_all(arena, values);
        if (input[1] != converted_input_x_from_uint8(1) || input[2] != stored) {
            return 1;
        }
        output[0] = 3;
        output[1] = stored;
        converted_output_y_to_uint8_all(arena, backs);
        if (backs[0] != converted_output_y_to_uint8(3) || backs[1] != back) {
            return 1;
        }
    }
#endif
    return 0;
}
