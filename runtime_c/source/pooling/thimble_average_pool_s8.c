/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_pool.h"

arm_cmsis_nn_status thimble_average_pool_s8(const cmsis_nn_context *ctx,
                                            const cmsis_nn_pool_params *pool_params,
                                            const cmsis_nn_dims *input_dims,
                                            const int8_t *src,
                                            const cmsis_nn_dims *filter_dims,
                                            const cmsis_nn_dims *output_dims,
                                            int8_t *dst)
{
    (void)ctx;
    return thimble_average_pool_lifted_s8(0, pool_params, input_dims, src, filter_dims, output_dims, dst);
}
