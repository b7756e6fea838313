/* SPDX-License-Identifier: Apache-2.0
 *
 * Sine and cosine share the reduction of their angle.
 */
#ifndef THIMBLE_ANGLE_H
#define THIMBLE_ANGLE_H

#include <stdint.h>

/** What is left of an angle of at least pi / 4 after whole quarters of a turn: from -pi / 4 to pi / 4. The
 *  number of quarters goes to `quarters`, modulo 4. */
float thimble_angle_f32(float x, uint32_t *quarters);

/** Sine and cosine of an angle from -pi / 4 to pi / 4. */
static inline float thimble_near_sine_f32(float r)
{
    const float z = r * r;
    float p = 2.7183114939898219064e-6f;

    p = p * z + -1.9839334836096632576e-4f;
    p = p * z + 8.3333293858894631756e-3f;
    p = p * z + -1.6666666641626524e-1f;
    return p * (z * r) + r;
}

static inline float thimble_near_cosine_f32(float r)
{
    const float z = r * r;
    float p = 2.4390448796277409065e-5f;

    p = p * z + -1.3886763774609929e-3f;
    p = p * z + 4.1666623323739063189e-2f;
    return p * (z * z) + (1.0f - 0.5f * z);
}

#endif
