/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and its logarithm of int8 rows, as TFLite's fixed-point reference kernels compute them.
 */
#ifndef THIMBLE_SOFTMAX_H
#define THIMBLE_SOFTMAX_H

#include <stdint.h>

/** Softmax of each of `rows` rows of `columns` contiguous elements, to scale 1/256 and zero point -128.
 *  exponentials[d] = exp(-d * scale * beta) in Q0.31 for d = 0 .. entries - 1; beyond that it is 0.
 *  The output may begin at, or anywhere below, the input. */
void thimble_softmax_s8(const int8_t *input,
                        int8_t *output,
                        int32_t rows,
                        int32_t columns,
                        const int32_t *exponentials,
                        int32_t entries);

/** The same to int16, scale 1/65536 and zero point -32768; fewer than 4096 columns, no overlap. */
void thimble_softmax_s8_s16(const int8_t *input,
                            int16_t *output,
                            int32_t rows,
                            int32_t columns,
                            const int32_t *exponentials,
                            int32_t entries);

/** exponentials[d] = exp(-d * scale) in Q0.31 for d = 0 .. entries - 1; factors, multiplier * 2^(shift - 31),
 *  from differences of inputs to Q5.26 and back; the least difference that counts. */
typedef struct {
    const int32_t *exponentials;
    int32_t entries;
    int32_t multiplier;
    int32_t shift;
    int32_t reverse_multiplier;
    int32_t reverse_shift;
    int32_t least;
} thimble_log_softmax_params;

/** Logarithm of the softmax of each row (fewer than 4096 columns), to scale 1/16 and zero point 127 (TFLite
 *  `reference_integer_ops::LogSoftmax`). The output may be the input. */
void thimble_log_softmax_s8(const int8_t *input,
                            int8_t *output,
                            int32_t rows,
                            int32_t columns,
                            const thimble_log_softmax_params *params);

#endif
