/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns_s4.h"
#include "thimble_walks.h"

#include <stddef.h>

void thimble_convolve_inside_s4(const thimble_inside_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output)
{
    thimble_walk_inside(shape, requant, input, parameters, scratch, output, thimble_mat_mult_windows_s4,
                        NULL);
}
