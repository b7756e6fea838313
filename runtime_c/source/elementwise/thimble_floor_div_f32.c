/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"

float thimble_floor_div_f32(float a, float b)
{
    const double quotient = (double)a / (double)b;

    if (!(quotient > -4503599627370496.0 && quotient < 4503599627370496.0)) {
        return (float)quotient;
    }
    const double whole = (double)(int64_t)quotient;
    const double below = whole > quotient ? whole - 1.0 : whole;
    return (float)(below == 0.0 ? quotient * 0.0 : below); /* -0 stays -0 */
}
