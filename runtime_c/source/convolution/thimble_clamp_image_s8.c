/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_clamp_image.h"
#include "thimble_requantize_s8.h"

#if THIMBLE_DSP
/* Each of four int8 values, by the flags that SSUB8 leaves for SEL. */
static inline uint32_t clamp_fours(uint32_t fours, uint32_t low, uint32_t high)
{
    uint32_t apart;
    __asm("ssub8   %[apart], %[fours], %[low] \n"
          "sel     %[fours], %[fours], %[low] \n"
          "ssub8   %[apart], %[high], %[fours] \n"
          "sel     %[fours], %[fours], %[high] \n"
          : [fours] "+r"(fours), [apart] "=&r"(apart)
          : [low] "r"(low), [high] "r"(high)
          : "cc");
    return fours;
}
#endif

void thimble_clamp_image_s8(const thimble_conv_shape *shape, const thimble_requant *requant, int8_t *output)
{
    const int32_t low = requant->activation_min, high = requant->activation_max;
    const int32_t line = shape->output_line;
    const int32_t across = shape->transposed;
    const int32_t lines = across ? shape->output_w : shape->output_h;
    const int32_t seen = shape->output_c * (across ? shape->output_h : shape->output_w);
    const int32_t whole = shape->batches * lines;
    if (!thimble_narrow(requant)) {
        return;
    }
    for (int32_t left = line ? whole : 1; left > 0; left--, output += line) {
        int8_t *to = output;
        int32_t count = line ? seen : whole * seen;
#if THIMBLE_DSP
        for (; count >= 4; count -= 4, to += 4) {
            const uint32_t fours =
                clamp_fours(thimble_read_word(to), (uint8_t)low * 0x01010101U, (uint8_t)high * 0x01010101U);
            (void)memcpy(to, &fours, 4);
        }
#endif
        for (; count > 0; count--, to++) {
            *to = (int8_t)thimble_clamp_sum(*to, low, high);
        }
    }
}
