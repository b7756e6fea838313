/* SPDX-License-Identifier: Apache-2.0 */
/* CONVOLVE_1X1: pixels in a row, by CONVOLVE_INSIDE. */
#include "thimble_conv.h"
#include "thimble_inside.h"

void CONVOLVE_1X1(int32_t pixels,
                  int32_t depth,
                  int32_t channels,
                  int32_t at_once,
                  const thimble_requant *requant,
                  const int8_t *input,
                  const int32_t *parameters,
                  void *scratch,
                  int8_t *output)
{
    const thimble_inside_shape shape = {.output_h = 1,
                                        .output_w = pixels,
                                        .output_c = channels,
                                        .kernel_h = 1,
                                        .row_words = depth / 4,
                                        .pixel_step = depth,
                                        .at_once = at_once};
    CONVOLVE_INSIDE(&shape, requant, input, parameters, scratch, output);
}
