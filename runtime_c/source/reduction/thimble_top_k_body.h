/* SPDX-License-Identifier: Apache-2.0 */
/* TOP_K of ELEMENT: the first k of each row, by value, then by place. */
#include "thimble_choice.h"

/* Whether element `i` of value `a` stands before element `j` of value `b`. */
static int32_t comes_first(const thimble_top_k_params *params, ELEMENT a, int32_t i, ELEMENT b, int32_t j)
{
    if (a == b) {
        return i < j;
    }
    return params->smallest != 0 ? a < b : a > b;
}

void TOP_K(const thimble_top_k_params *params, const ELEMENT *input, ELEMENT *values, void *indices)
{
    for (int32_t row = 0; row < params->rows; row++, input += params->columns) {
        int32_t last = -1;
        for (int32_t rank = 0; rank < params->k; rank++) {
            /* The best that comes after the last one: worse than it, or equal and further on. */
            int32_t found = -1;
            for (int32_t i = 0; i < params->columns; i++) {
                if (last >= 0 && !comes_first(params, input[last], last, input[i], i)) {
                    continue;
                }
                if (found < 0 || comes_first(params, input[i], i, input[found], found)) {
                    found = i;
                }
            }
            if (found < 0) { /* what is left is not a number */
                found = last;
            }
            last = found;
            *values++ = input[found];
            const int32_t place = row * params->k + rank;
            if (params->index_bytes == 8) {
                ((int64_t *)indices)[place] = found;
            } else {
                ((int32_t *)indices)[place] = found;
            }
        }
    }
}
