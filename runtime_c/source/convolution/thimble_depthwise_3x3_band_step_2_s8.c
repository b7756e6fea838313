/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_depthwise_3x3_band.h"

THIMBLE_ASM_FUNCTION void thimble_depthwise_3x3_band_step_2_s8(const thimble_conv_shape *shape,
                                                               const thimble_requant *requant,
                                                               const int8_t *input,
                                                               const int32_t *parameters,
                                                               void *scratch,
                                                               int8_t *output)
{
    thimble_depthwise_3x3_band(shape, requant, input, parameters, scratch, output, 2);
}
