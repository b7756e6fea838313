/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

THIMBLE_EXACT_FLOAT float thimble_gelu_tanh_f32(float x)
{
    const float inner = 0.7978845608f * (x + 0.044715f * (x * x * x));
    return 0.5f * x * (1.0f + thimble_tanh_f32(inner));
}
