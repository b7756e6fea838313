/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fft.h"

typedef struct {
    int32_t real;
    int32_t imag;
} pair;

static inline pair quarter(const int16_t *number)
{
    const pair result = {thimble_fft_round(number[0] * THIMBLE_FFT_QUARTER),
                         thimble_fft_round(number[1] * THIMBLE_FFT_QUARTER)};

    return result;
}

static inline pair turned(pair a, const int16_t *by)
{
    const pair result = {thimble_fft_round(a.real * by[0] - a.imag * by[1]),
                         thimble_fft_round(a.real * by[1] + a.imag * by[0])};

    return result;
}

static inline void put(int16_t *to, int32_t real, int32_t imag)
{
    to[0] = (int16_t)real;
    to[1] = (int16_t)imag;
}

void thimble_fft_radix_4_s16(
    int16_t *data, int32_t length, int32_t apart, int32_t step, const int16_t *twiddles)
{
    const int32_t stride = 2 * apart;

    for (int32_t k = 0; k < apart; k++) {
        const int16_t *const by = twiddles + 2 * k * step;
        const int16_t *const by_2 = twiddles + 4 * k * step;
        const int16_t *const by_3 = twiddles + 6 * k * step;

        for (int32_t block = k; block < length; block += 4 * apart) {
            int16_t *const at = data + 2 * block;
            const pair a = quarter(at);
            const pair b = turned(quarter(at + stride), by);
            const pair c = turned(quarter(at + 2 * stride), by_2);
            const pair d = turned(quarter(at + 3 * stride), by_3);
            const pair even = {a.real + c.real, a.imag + c.imag};
            const pair odd = {a.real - c.real, a.imag - c.imag};
            const pair sum = {b.real + d.real, b.imag + d.imag};
            const pair difference = {b.real - d.real, b.imag - d.imag};

            put(at, even.real + sum.real, even.imag + sum.imag);
            put(at + stride, odd.real + difference.imag, odd.imag - difference.real);
            put(at + 2 * stride, even.real - sum.real, even.imag - sum.imag);
            put(at + 3 * stride, odd.real - difference.imag, odd.imag + difference.real);
        }
    }
}
