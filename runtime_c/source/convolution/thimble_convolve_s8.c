/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_walks.h"

void thimble_convolve_s8(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output)
{
    thimble_walk_windows(shape, requant, input, parameters, scratch, output, thimble_mat_mult_windows_s8, 2);
}
