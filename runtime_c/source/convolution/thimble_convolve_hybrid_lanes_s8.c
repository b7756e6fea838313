/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_hybrid_windows.h"

void thimble_convolve_hybrid_lanes_s8(const thimble_window_f32 *window,
                                      const thimble_hybrid_params *params,
                                      const float *input,
                                      const int32_t *parameters,
                                      const int32_t *taps,
                                      const float *scales,
                                      const float *bias,
                                      void *scratch,
                                      float *output)
{
    thimble_hybrid_convolve(window, params, thimble_sum_units_lanes_s8, input, parameters, taps, scales, bias,
                            scratch, output);
}
