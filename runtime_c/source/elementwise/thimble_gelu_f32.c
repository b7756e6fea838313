/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

THIMBLE_EXACT_FLOAT float thimble_gelu_f32(float x)
{
    return 0.5f * x * (1.0f + thimble_erf_f32(x * 0.7071067812f));
}
