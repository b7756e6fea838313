/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_fourier_f32.h"

typedef struct {
    float real;
    float imag;
} pair;

THIMBLE_EXACT_FLOAT static void twos(float *data, int32_t length)
{
    for (int32_t i = 0; i < 2 * length; i += 4) {
        for (int32_t part = i; part < i + 2; part++) {
            const float a = data[part];
            const float b = data[part + 2];

            data[part] = a + b;
            data[part + 2] = a - b;
        }
    }
}

THIMBLE_EXACT_FLOAT static inline pair turned(const float *a, const float *by)
{
    const pair result = {a[0] * by[0] - a[1] * by[1], a[0] * by[1] + a[1] * by[0]};

    return result;
}

/* Four numbers to their sums, `stride` floats apart; of the last three what is given. */
THIMBLE_EXACT_FLOAT static inline void add_four(float *at, int32_t stride, pair b, pair c, pair d)
{
    const pair even = {at[0] + c.real, at[1] + c.imag};
    const pair odd = {at[0] - c.real, at[1] - c.imag};
    const pair sum = {b.real + d.real, b.imag + d.imag};
    const pair difference = {b.real - d.real, b.imag - d.imag};

    at[0] = even.real + sum.real;
    at[1] = even.imag + sum.imag;
    at += stride;
    at[0] = odd.real + difference.imag;
    at[1] = odd.imag - difference.real;
    at += stride;
    at[0] = even.real - sum.real;
    at[1] = even.imag - sum.imag;
    at += stride;
    at[0] = odd.real - difference.imag;
    at[1] = odd.imag + difference.real;
}

/* Fours of numbers `apart` numbers apart; the first of each run has no factors. */
THIMBLE_EXACT_FLOAT static void fours(float *data, int32_t length, int32_t apart, const float *twiddles)
{
    const int32_t stride = 2 * apart;
    const int32_t step = length / (4 * apart);

    for (int32_t block = 0; block < length; block += 4 * apart) {
        float *const at = data + 2 * block;
        const pair b = {at[stride], at[stride + 1]};
        const pair c = {at[2 * stride], at[2 * stride + 1]};
        const pair d = {at[3 * stride], at[3 * stride + 1]};

        add_four(at, stride, b, c, d);
    }
    for (int32_t k = 1; k < apart; k++) {
        const float *const by = twiddles + 2 * k * step;
        const float *const by_2 = by + 2 * k * step;
        const float *const by_3 = by_2 + 2 * k * step;

        for (int32_t block = k; block < length; block += 4 * apart) {
            float *const at = data + 2 * block;

            add_four(at, stride, turned(at + stride, by), turned(at + 2 * stride, by_2),
                     turned(at + 3 * stride, by_3));
        }
    }
}

void thimble_fourier_passes_f32(const thimble_fourier_f32 *plan, float *data)
{
    const int32_t length = plan->length;
    int32_t apart = 1;

    while (length / apart % 4 == 0) {
        apart *= 4;
    }
    if (length > apart) {
        twos(data, length);
        apart = 2;
    } else {
        apart = 1;
    }
    for (; apart < length; apart *= 4) {
        fours(data, length, apart, plan->twiddles);
    }
}
