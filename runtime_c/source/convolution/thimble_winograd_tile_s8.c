/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_winograd.h"

#if THIMBLE_ASM
/* What the assembly keeps in memory, having no register left. `second`: the second pixel of the first line;
 * `kept`: the second column times B^T. */
typedef struct {
    const int8_t *second;
    int32_t line, three_lines, channels;
    int32_t words, next;
    uint32_t kept[4];
} tile_state;

/* Four pixels of a column, from `at` down, into r0 to r3. */
#define LOAD(at, line, three_lines)                                                                          \
    "ldr     r0, [" at "]                      \n"                                                           \
    "ldr     r1, [" at ", " line "]            \n"                                                           \
    "ldr     r2, [" at ", " line ", lsl #1]    \n"                                                           \
    "ldr     r3, [" at ", " three_lines "]     \n"

#define EXTEND(rotated)                                                                                      \
    "sxtb16  r0, r0" rotated "                 \n"                                                           \
    "sxtb16  r1, r1" rotated "                 \n"                                                           \
    "sxtb16  r2, r2" rotated "                 \n"                                                           \
    "sxtb16  r3, r3" rotated "                 \n"

/* r0 to r3 times B^T. */
#define COLUMN(w0, w1, w2, w3)                                                                               \
    "ssub16  " w0 ", r0, r2                    \n"                                                           \
    "sadd16  " w1 ", r1, r2                    \n"                                                           \
    "ssub16  " w2 ", r2, r1                    \n"                                                           \
    "ssub16  " w3 ", r1, r3                    \n"

/* One entry of v; on to the next position, lr bytes further. */
#define PUT(operation, t, a, b)                                                                              \
    operation "  " t ", " a ", " b "           \n"                                                           \
              "str     " t ", [r12]                      \n"                                                 \
              "add     r12, r12, lr                      \n"

/* Two channels of four: columns 1 and 2 of the pixels, then 0, then 3. */
/* clang-format off */
#define PAIR(rotated)                                                                                        \
    "ldr     r8, %[second]                  \n"                                                              \
    "ldr     r9, %[line]                    \n"                                                              \
    "ldr     r10, %[three_lines]            \n"                                                              \
    "ldr     r11, %[channels]               \n"                                                              \
    LOAD("r8", "r9", "r10")                                                                                  \
    "add     r8, r8, r11                    \n"                                                              \
    EXTEND(rotated)                                                                                          \
    COLUMN("r4", "r5", "r6", "r7")                                                                           \
    LOAD("r8", "r9", "r10")                                                                                  \
    EXTEND(rotated)                                                                                          \
    COLUMN("r8", "r9", "r10", "r11")                                                                         \
    PUT("sadd16", "r0", "r5", "r9")                                                                          \
    PUT("sadd16", "r1", "r6", "r10")                                                                         \
    PUT("sadd16", "r0", "r4", "r8")                                                                          \
    PUT("ssub16", "r1", "r9", "r5")                                                                          \
    PUT("ssub16", "r0", "r10", "r6")                                                                         \
    PUT("ssub16", "r1", "r8", "r4")                                                                          \
    "add     r0, r12, lr, lsl #2            \n"                                                              \
    "add     r0, r0, lr, lsl #1             \n"                                                              \
    "sadd16  r1, r7, r11                    \n"                                                              \
    "ssub16  r2, r11, r7                    \n"                                                              \
    "str     r4, %[kept_0]                  \n"                                                              \
    "str     r5, %[kept_1]                  \n"                                                              \
    "str     r6, %[kept_2]                  \n"                                                              \
    "str     r7, %[kept_3]                  \n"                                                              \
    "ldr     r4, %[second]                  \n"                                                              \
    "ldr     r5, %[line]                    \n"                                                              \
    "ldr     r6, %[three_lines]             \n"                                                              \
    "ldr     r7, %[channels]                \n"                                                              \
    "sub     r4, r4, r7                     \n"                                                              \
    "str     r1, [r0]                       \n"                                                              \
    "str     r2, [r0, lr]                   \n"                                                              \
    LOAD("r4", "r5", "r6")                                                                                   \
    "add     r4, r4, r7                     \n"                                                              \
    "add     r4, r4, r7, lsl #1             \n"                                                              \
    EXTEND(rotated)                                                                                          \
    "sadd16  r7, r1, r2                     \n"                                                              \
    "ssub16  r0, r0, r2                     \n"                                                              \
    "ssub16  r2, r2, r1                     \n"                                                              \
    "ssub16  r3, r1, r3                     \n"                                                              \
    PUT("ssub16", "r7", "r7", "r9")                                                                          \
    PUT("ssub16", "r2", "r2", "r10")                                                                         \
    PUT("ssub16", "r0", "r0", "r8")                                                                          \
    "add     r2, r12, lr, lsl #2            \n"                                                              \
    "ssub16  r3, r3, r11                    \n"                                                              \
    "str     r3, [r2, lr]                   \n"                                                              \
    LOAD("r4", "r5", "r6")                                                                                   \
    "ldr     r8, %[kept_0]                  \n"                                                              \
    "ldr     r9, %[kept_1]                  \n"                                                              \
    "ldr     r10, %[kept_2]                 \n"                                                              \
    "ldr     r11, %[kept_3]                 \n"                                                              \
    EXTEND(rotated)                                                                                          \
    COLUMN("r4", "r5", "r6", "r7")                                                                           \
    PUT("ssub16", "r0", "r9", "r5")                                                                          \
    PUT("ssub16", "r1", "r10", "r6")                                                                         \
    PUT("ssub16", "r0", "r8", "r4")                                                                          \
    "ldr     r0, %[next]                       \n"                                                           \
    "add     r2, r12, lr, lsl #1            \n"                                                              \
    "ssub16  r3, r11, r7                    \n"                                                              \
    "str     r3, [r2, lr]                   \n"                                                              \
    "sub     r12, r12, lr, lsl #3           \n"                                                              \
    "sub     r12, r12, lr, lsl #2           \n"                                                              \
    "add     r12, r12, r0                      \n"
/* clang-format on */

THIMBLE_ASM_FUNCTION void
thimble_winograd_tile_s8(const int8_t *window, int32_t line, int32_t channels, int32_t tiles, uint32_t *taps)
{
    tile_state state = {window + channels, line, 3 * line, channels, channels >> 2, 4 * tiles, {0, 0, 0, 0}};
    register uint32_t *to __asm("r12") = taps;
    register int32_t step __asm("lr") = 2 * channels * tiles;
    __asm volatile(
        "1:                                        \n" PAIR("")
            PAIR(", ror #8") "ldr     r0, %[second]                     \n"
                             "ldr     r1, %[words]                      \n"
                             "add     r0, r0, #4                        \n"
                             "subs    r1, r1, #1                        \n"
                             "str     r0, %[second]                     \n"
                             "str     r1, %[words]                      \n"
                             "bne     1b                                \n"
        : "+r"(to),
          "+r"(step), [second] "+m"(state.second), [words] "+m"(state.words), [kept_0] "+m"(state.kept[0]),
          [kept_1] "+m"(state.kept[1]), [kept_2] "+m"(state.kept[2]), [kept_3] "+m"(state.kept[3])
        : [line] "m"(state.line), [three_lines] "m"(state.three_lines), [channels] "m"(state.channels),
          [next] "m"(state.next)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "cc", "memory");
}
#else
/* Two channels of four pixels, d, times B^T. */
static void column(uint32_t *w, const uint32_t *d)
{
    w[0] = thimble_ssub16(d[0], d[2]);
    w[1] = thimble_sadd16(d[1], d[2]);
    w[2] = thimble_ssub16(d[2], d[1]);
    w[3] = thimble_ssub16(d[1], d[3]);
}

void thimble_winograd_tile_s8(
    const int8_t *window, int32_t line, int32_t channels, int32_t tiles, uint32_t *taps)
{
    static const uint8_t order[THIMBLE_WINOGRAD_POSITIONS][2] = {
        {1, 1}, {2, 1}, {0, 1}, {1, 2}, {2, 2}, {0, 2}, {1, 0}, {2, 0},
        {0, 0}, {1, 3}, {2, 3}, {0, 3}, {3, 1}, {3, 2}, {3, 0}, {3, 3}};
    const int32_t step = channels / 2 * tiles;
    for (int32_t channel = 0; channel < channels; channel += 4, window += 4) {
        for (int32_t odd = 0; odd < 2; odd++, taps += tiles) {
            uint32_t w[4][4], across[4][4], v[4][4];
            for (int32_t x = 0; x < 4; x++) {
                uint32_t d[4];
                for (int32_t y = 0; y < 4; y++) {
                    const uint32_t word = thimble_read_word(window + y * line + x * channels);
                    d[y] = odd ? thimble_sxtb16_ror8(word) : thimble_sxtb16(word);
                }
                column(w[x], d);
            }
            for (int32_t y = 0; y < 4; y++) {
                for (int32_t x = 0; x < 4; x++) {
                    across[y][x] = w[x][y];
                }
                column(v[y], across[y]);
            }
            for (int32_t i = 0; i < THIMBLE_WINOGRAD_POSITIONS; i++) {
                taps[i * step] = v[order[i][0]][order[i][1]];
            }
        }
    }
}
#endif
