/* SPDX-License-Identifier: Apache-2.0 */
/* `size` contiguous integers of 8, 16 or 32 bits to integers of another scale (TFLite `Requantize`), in
 * ascending order. The output may begin at or below the input if its elements are no wider. */
#ifndef THIMBLE_REQUANTIZE_H
#define THIMBLE_REQUANTIZE_H

#include <stdint.h>

/** output = (input + input_offset) * multiplier * 2^(shift - 31) + output_offset, held within min and max. */
typedef struct {
    int32_t input_offset;
    int32_t multiplier;
    int32_t shift;
    int32_t output_offset;
    int32_t min;
    int32_t max;
} thimble_requantize_params;

void thimble_requantize_s8_s16(const int8_t *input,
                               int16_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_u8_s16(const uint8_t *input,
                               int16_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_s8_s32(const int8_t *input,
                               int32_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_s16_s8(const int16_t *input,
                               int8_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_s16_s16(const int16_t *input,
                                int16_t *output,
                                int32_t size,
                                const thimble_requantize_params *params);

void thimble_requantize_s16_s32(const int16_t *input,
                                int32_t *output,
                                int32_t size,
                                const thimble_requantize_params *params);

void thimble_requantize_s32_s8(const int32_t *input,
                               int8_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_s32_s16(const int32_t *input,
                                int16_t *output,
                                int32_t size,
                                const thimble_requantize_params *params);

void thimble_requantize_s32_s32(const int32_t *input,
                                int32_t *output,
                                int32_t size,
                                const thimble_requantize_params *params);

#endif
