/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_winograd.h"

enum { SIDE = THIMBLE_WINOGRAD_4X4_SIDE };

#if THIMBLE_ASM
/* What the assembly keeps in memory, having no register left. `halves`: the pixels times B^T by columns,
 * first of channels 0 and 2, then of 1 and 3. */
typedef struct {
    const int8_t *window;
    int32_t line, channels, words, step, next;
    uint32_t *taps, *start, *end;
    uint32_t halves[2 * SIDE * SIDE];
} tile_state;

/* clang-format off */

/* x0 to x5 in r0 to r5 times B^T, but for the last operation of each: 4 * (x0 - x2) in r0, x4 - x2 in r6, twice
 * x3 - x1 in r7, x5 - x3 less r7 in r5; x4 - 4 * x2 in r4 and x3 - 4 * x1 in r3. */
#define TRANSFORM                                                                                            \
    "ssub16  r6, r4, r2                        \n"                                                           \
    "ssub16  r7, r3, r1                        \n"                                                           \
    "ssub16  r0, r0, r2                        \n"                                                           \
    "sadd16  r0, r0, r0                        \n"                                                           \
    "sadd16  r0, r0, r0                        \n"                                                           \
    "ssub16  r5, r5, r3                        \n"                                                           \
    "sadd16  r7, r7, r7                        \n"                                                           \
    "ssub16  r5, r5, r7                        \n"                                                           \
    "sadd16  r2, r2, r2                        \n"                                                           \
    "ssub16  r4, r4, r2                        \n"                                                           \
    "ssub16  r4, r4, r2                        \n"                                                           \
    "sadd16  r1, r1, r1                        \n"                                                           \
    "ssub16  r3, r3, r1                        \n"                                                           \
    "ssub16  r3, r3, r1                        \n"

/* Six columns of pixels from r8 on; r9: bytes of a line, r10: of a pixel, to r12. */
#define COLUMNS(rotated)                                                                                     \
    "ldr     r8, %[window]                     \n"                                                           \
    "mov     lr, #6                            \n"                                                           \
    "add     r11, r8, r9                       \n"                                                           \
    "add     r11, r11, r9, lsl #1              \n"                                                           \
    ".p2align 2                                \n"                                                           \
    "2:                                        \n"                                                           \
    "ldr     r0, [r8]                          \n"                                                           \
    "ldr     r1, [r8, r9]                      \n"                                                           \
    "ldr     r2, [r8, r9, lsl #1]              \n"                                                           \
    "ldr     r3, [r11]                         \n"                                                           \
    "ldr     r4, [r11, r9]                     \n"                                                           \
    "ldr     r5, [r11, r9, lsl #1]             \n"                                                           \
    "add     r8, r8, r10                       \n"                                                           \
    "add     r11, r11, r10                     \n"                                                           \
    "sxtb16  r0, r0" rotated "                 \n"                                                           \
    "sxtb16  r1, r1" rotated "                 \n"                                                           \
    "sxtb16  r2, r2" rotated "                 \n"                                                           \
    "sxtb16  r3, r3" rotated "                 \n"                                                           \
    "sxtb16  r4, r4" rotated "                 \n"                                                           \
    "sxtb16  r5, r5" rotated "                 \n"                                                           \
    TRANSFORM                                                                                                \
    "sadd16  r0, r0, r6                        \n"                                                           \
    "ssub16  r5, r5, r7                        \n"                                                           \
    "sadd16  r1, r4, r3                        \n"                                                           \
    "ssub16  r2, r4, r3                        \n"                                                           \
    "sadd16  r3, r6, r7                        \n"                                                           \
    "ssub16  r4, r6, r7                        \n"                                                           \
    "str     r0, [r12, #96]                    \n"                                                           \
    "str     r5, [r12, #120]                   \n"                                                           \
    "str     r2, [r12, #24]                    \n"                                                           \
    "str     r3, [r12, #48]                    \n"                                                           \
    "str     r4, [r12, #72]                    \n"                                                           \
    "str     r1, [r12], #4                     \n"                                                           \
    "subs    lr, lr, #1                        \n"                                                           \
    "bne     2b                                \n"

/* One entry of v; on to the next position, r9 bytes further. */
#define PUT(operation, t, a, b)                                                                              \
    operation "  " t ", " a ", " b "           \n"                                                           \
    "str     " t ", [r8]                       \n"                                                           \
    "add     r8, r8, r9                        \n"

THIMBLE_ASM_FUNCTION void
thimble_winograd_tile_4x4_s8(const int8_t *window, int32_t line, int32_t channels, int32_t tiles, uint32_t *taps)
{
    tile_state state;
    state.window = window;
    state.line = line;
    state.channels = channels;
    state.words = channels >> 2;
    state.step = 2 * channels * tiles;
    state.next = 4 * tiles;
    state.taps = taps;
    state.start = state.halves;
    state.end = state.halves + 2 * SIDE * SIDE;
    __asm volatile(
        "1:                                        \n"
        "ldr     r12, %[start]                     \n"
        "ldr     r9, %[line]                       \n"
        "ldr     r10, %[channels]                  \n"
        COLUMNS("")
        "add     r12, r12, #120                    \n"
        COLUMNS(", ror #8")
        "ldr     r10, %[taps]                      \n"
        "ldr     r9, %[step]                       \n"
        "ldr     r11, %[end]                       \n"
        "ldr     r12, %[start]                     \n"

        "3:                                        \n"
        "mov     r8, r10                           \n"
        "mov     lr, #6                            \n"
        ".p2align 2                                \n"
        "4:                                        \n"
        "ldmia   r12!, {r0-r5}                     \n"
        TRANSFORM
        PUT("sadd16", "r1", "r4", "r3")
        PUT("ssub16", "r2", "r4", "r3")
        PUT("sadd16", "r3", "r6", "r7")
        PUT("ssub16", "r4", "r6", "r7")
        PUT("sadd16", "r0", "r0", "r6")
        PUT("ssub16", "r5", "r5", "r7")
        "subs    lr, lr, #1                        \n"
        "bne     4b                                \n"
        "ldr     r0, %[next]                       \n"
        "add     r10, r10, r0                      \n"
        "cmp     r12, r11                          \n"
        "bne     3b                                \n"

        "ldr     r0, %[window]                     \n"
        "ldr     r1, %[words]                      \n"
        "str     r10, %[taps]                      \n"
        "add     r0, r0, #4                        \n"
        "subs    r1, r1, #1                        \n"
        "str     r0, %[window]                     \n"
        "str     r1, %[words]                      \n"
        "bne     1b                                \n"
        : [window] "+m"(state.window), [words] "+m"(state.words), [taps] "+m"(state.taps)
        : [line] "m"(state.line), [channels] "m"(state.channels), [step] "m"(state.step), [next] "m"(state.next),
          [start] "m"(state.start), [end] "m"(state.end)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
}
/* clang-format on */
#else
/* Two channels of six pixels, x, times B^T. */
static void column(uint32_t *w, const uint32_t *x)
{
    const uint32_t a = thimble_ssub16(x[4], x[2]), b = thimble_ssub16(x[3], x[1]);
    const uint32_t c = thimble_ssub16(x[0], x[2]), twice_b = thimble_sadd16(b, b);
    const uint32_t twice_c = thimble_sadd16(c, c), twice_1 = thimble_sadd16(x[1], x[1]);
    const uint32_t twice_2 = thimble_sadd16(x[2], x[2]);
    const uint32_t e = thimble_ssub16(thimble_ssub16(x[4], twice_2), twice_2);
    const uint32_t f = thimble_ssub16(thimble_ssub16(x[3], twice_1), twice_1);
    w[0] = thimble_sadd16(thimble_sadd16(twice_c, twice_c), a);
    w[1] = thimble_sadd16(e, f);
    w[2] = thimble_ssub16(e, f);
    w[3] = thimble_sadd16(a, twice_b);
    w[4] = thimble_ssub16(a, twice_b);
    w[5] = thimble_ssub16(thimble_ssub16(thimble_ssub16(x[5], x[3]), twice_b), twice_b);
}

void thimble_winograd_tile_4x4_s8(
    const int8_t *window, int32_t line, int32_t channels, int32_t tiles, uint32_t *taps)
{
    static const uint8_t order[SIDE] = {1, 2, 3, 4, 0, 5};
    const int32_t step = channels / 2 * tiles;
    for (int32_t channel = 0; channel < channels; channel += 4, window += 4) {
        for (int32_t odd = 0; odd < 2; odd++, taps += tiles) {
            uint32_t w[SIDE][SIDE], across[SIDE], v[SIDE];
            for (int32_t x = 0; x < SIDE; x++) {
                uint32_t d[SIDE];
                for (int32_t y = 0; y < SIDE; y++) {
                    const uint32_t word = thimble_read_word(window + y * line + x * channels);
                    d[y] = odd ? thimble_sxtb16_ror8(word) : thimble_sxtb16(word);
                }
                column(w[x], d);
            }
            for (int32_t row = 0; row < SIDE; row++) {
                for (int32_t x = 0; x < SIDE; x++) {
                    across[x] = w[x][order[row]];
                }
                column(v, across);
                for (int32_t i = 0; i < SIDE; i++) {
                    taps[(SIDE * row + i) * step] = v[order[i]];
                }
            }
        }
    }
}
#endif
