/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_clamp_image.h"
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_requantize_rows.h"
#include "thimble_requantize_s8.h"

/* int16 values in one image line of the depthwise kernel: what the last outputs read (with a stride of one or
 * two outputs come in fours), rounded up to even, and two more that word loads touch. */
static inline int32_t line_values(const thimble_conv_shape *shape)
{
    const int32_t outputs = shape->stride_w <= 2 ? (shape->output_w + 3) & ~3 : shape->output_w;
    const int32_t seen = (outputs - 1) * shape->stride_w + (shape->kernel_w - 1) * shape->dilation_w + 1;
    return ((seen + 1) & ~1) + 2;
}

/* Image lines: values to the left that are not in the image, values from it; bytes between pixels and between
 * rows. */
typedef struct {
    int32_t before, inside;
    int32_t pixel_step, row_step;
    int32_t values;
    int32_t zero_point;
} line_layout;

/* One channel of an image row, less its zero point. */
static void put_line(const line_layout *layout, const int8_t *from, int16_t *to)
{
    const int32_t step = layout->pixel_step, zero = layout->zero_point;
    int32_t count = layout->inside;
    for (; count >= 4; count -= 4, from += 2 * step, to += 4) {
        const int32_t a = from[0], b = from[step];
        from += 2 * step;
        const int32_t c = from[0], d = from[step];
        to[0] = (int16_t)(a - zero);
        to[1] = (int16_t)(b - zero);
        to[2] = (int16_t)(c - zero);
        to[3] = (int16_t)(d - zero);
    }
    for (; count > 0; count--, from += step) {
        *to++ = (int16_t)(*from - zero);
    }
}

/* Words of taps of a kernel row that are summed without a turn of the loop. */
#define STEPS 4

/* Rows of outputs, four outputs at a time: sums of so many steps of each kernel row that is in the image. A
 * step takes two words of taps if the stride is one, for the even and for the odd outputs, and one if it is
 * two. The assembly reads it from the stack. */
typedef struct {
    int32_t top, end_top, stride; /* image rows of the first kernel row */
    int32_t height, kernel_h;
    const int16_t *lines; /* from image row `begin` on */
    int32_t begin, pitch; /* bytes of a line */
    int32_t apart;        /* bytes from the pixels of a kernel row to the next one's */
    const thimble_pair *block;
    int32_t steps, row_bytes; /* of the taps of a kernel row */
    const int32_t *start;     /* what the sums begin with, `start_step` bytes apart */
    int32_t start_step;
    int32_t *sums;
    int32_t width; /* bytes of a row of sums */
} rows_of_fours;

#if THIMBLE_ASM
/* clang-format off */
#if THIMBLE_DUAL_ISSUE
/* Two instructions a cycle: the next step's even taps and pixels are read before this one ends. */
#define UNIT_STEP(left, right)                                                                               \
    "ldr     %[o], [%[taps], #-4]       \n"                                                                  \
    "smlad   r4, " left ", r12, r4 \n"                                                                       \
    "smlad   r6, " right ", r12, r6 \n"                                                                      \
    "ldr     r12, [%[taps]], #8        \n"                                                                   \
    "smlad   r5, " left ", %[o], r5 \n"                                                                      \
    "ldr     " left ", [%[at]], #4      \n"                                                                  \
    "smlad   r8, " right ", %[o], r8 \n"
#define UNIT_PIXELS(left, right)                                                                             \
    "ldr     " left ", [%[at]], #4      \n"                                                                  \
    "ldr     " right ", [%[at]], #4     \n"
#define UNIT_AHEAD 2 /* words of pixels that are read beyond one a step */
#define UNIT_ENTRY "2"
#define UNIT_FIRST "ldr     r12, [%[taps]], #8 \n" ANY_FIRST
#define UNIT_NEXT ANY_NEXT
#define UNIT_STUBS                                                                                           \
    "b       3f                         \n"                                                                  \
    "23:                                \n" UNIT_PIXELS("r10", "r9")                                         \
    "b       13b                        \n"                                                                  \
    "22:                                \n" UNIT_PIXELS("r9", "r10")                                         \
    "b       12b                        \n"                                                                  \
    "21:                                \n" UNIT_PIXELS("r10", "r9")                                         \
    "b       11b                        \n"
#define STEP_OF_TWO                                                                                          \
    "ldr     r12, [%[taps]], #4        \n"                                                                   \
    "ldr     r9, [%[at]], #4          \n"                                                                    \
    "ldr     r10, [%[at]]              \n"                                                                   \
    "ldr     %[o], [%[at], #4]          \n"                                                                  \
    "smlad   r4, r9, r12, r4   \n"                                                                           \
    "ldr     r9, [%[at], #8]          \n"                                                                    \
    "smlad   r5, r10, r12, r5   \n"                                                                          \
    "smlad   r6, %[o], r12, r6   \n"                                                                         \
    "smlad   r8, r9, r12, r8   \n"
#else
#define UNIT_STEP(left, right)                                                                               \
    "ldr     %[o], [%[taps], #4]        \n"                                                                  \
    "ldr     r12, [%[taps]], #8        \n"                                                                   \
    "ldr     " right ", [%[at]], #4     \n"                                                                  \
    "smlad   r4, " left ", r12, r4 \n"                                                                       \
    "smlad   r5, " left ", %[o], r5 \n"                                                                      \
    "smlad   r6, " right ", r12, r6 \n"                                                                      \
    "smlad   r8, " right ", %[o], r8 \n"
#define UNIT_PIXELS(left, right) ""
#define UNIT_AHEAD 1
#define UNIT_ENTRY "1"
/* The first step's left word is in either register. */
#define UNIT_FIRST                                                                                           \
    "ldr     r9, [%[at]], #4          \n"                                                                    \
    "mov     r10, r9                 \n" ANY_FIRST
#define UNIT_NEXT                                                                                            \
    "ittt    ne                         \n"                                                                  \
    "ldrne   r9, [%[at]], #4          \n"                                                                    \
    "movne   r10, r9                 \n"                                                                     \
    "movne   pc, %[entry]               \n"
#define UNIT_STUBS ""
#define STEP_OF_TWO                                                                                          \
    "ldr     r12, [%[taps]], #4        \n"                                                                   \
    "ldr     r10, [%[at], #4]          \n"                                                                   \
    "ldr     %[o], [%[at], #8]          \n"                                                                  \
    "ldr     %[t], [%[at], #12]         \n"                                                                  \
    "ldr     r9, [%[at]], #4          \n"                                                                    \
    "smlad   r4, r9, r12, r4   \n"                                                                           \
    "smlad   r5, r10, r12, r5   \n"                                                                          \
    "smlad   r6, %[o], r12, r6   \n"                                                                         \
    "smlad   r8, %[t], r12, r8   \n"
#endif
#define ANY_FIRST "mov     pc, %[entry]               \n"
#define ANY_NEXT                                                                                             \
    "it      ne                         \n"                                                                  \
    "movne   pc, %[entry]               \n"
#define UNIT_STEPS                                                                                           \
    "24:                                \n" UNIT_PIXELS("r9", "r10")                                         \
    "14:                                \n" UNIT_STEP("r9", "r10")                                           \
    "13:                                \n" UNIT_STEP("r10", "r9")                                           \
    "12:                                \n" UNIT_STEP("r9", "r10")                                           \
    "11:                                \n" UNIT_STEP("r10", "r9")
#define STEPS_OF_TWO                                                                                         \
    "14:                                \n" STEP_OF_TWO                                                      \
    "13:                                \n" STEP_OF_TWO                                                      \
    "12:                                \n" STEP_OF_TWO                                                      \
    "11:                                \n" STEP_OF_TWO

/* `advance`: bytes from the pixels of four outputs to those of the next four. Steps begin at labels `at` and
 * their number. */
#define ROWS_OF_FOURS(advance, at_label, first, steps_of_row, next, stubs)                                   \
    __asm volatile(                                                                                          \
        "ldr     %[n], %[m_steps]           \n"                                                              \
        "adr.w   %[entry], " at_label "1f   \n"                                                              \
        "cmp     %[n], #2                   \n"                                                              \
        "it      eq                         \n"                                                              \
        "adreq.w %[entry], " at_label "2f   \n"                                                              \
        "cmp     %[n], #3                   \n"                                                              \
        "it      eq                         \n"                                                              \
        "adreq.w %[entry], " at_label "3f   \n"                                                              \
        "it      gt                         \n"                                                              \
        "adrgt.w %[entry], " at_label "4f   \n"                                                              \
        "4:                                 \n"                                                              \
        "ldr     %[t], %[m_top]             \n"                                                              \
        "ldr     r12, %[m_height]          \n"                                                               \
        "ldr     %[n], %[m_kernel_h]        \n"                                                              \
        "ldr     r9, %[m_begin]           \n"                                                                \
        "ldr     r10, %[m_pitch]           \n"                                                               \
        "ldr     %[at], %[m_lines]          \n"                                                              \
        "ldr     %[taps], %[m_block]        \n"                                                              \
        "rsb     %[o], %[t], #0             \n"                                                              \
        "sub     r12, r12, %[t]           \n"                                                                \
        "usat    %[t], #24, %[t]            \n"                                                              \
        "usat    %[o], #24, %[o]            \n" /* kernel rows above the image */                            \
        "cmp     r12, %[n]                 \n"                                                               \
        "it      lt                         \n"                                                              \
        "movlt   %[n], r12                 \n"                                                               \
        "sub     %[t], %[t], r9           \n"                                                                \
        "sub     %[n], %[n], %[o]           \n"                                                              \
        "mla     %[at], %[t], r10, %[at]   \n"                                                               \
        "ldr     r12, %[m_row_bytes]       \n"                                                               \
        "ldr     %[t], %[m_sums]            \n"                                                              \
        "ldr     r9, %[m_width]           \n"                                                                \
        "str     %[at], %[m_pixels]         \n"                                                              \
        "str     %[n], %[m_rows]            \n"                                                              \
        "mla     %[taps], %[o], r12, %[taps] \n"                                                             \
        "add     %[t], %[t], r9           \n"                                                                \
        "str     %[taps], %[m_taps]         \n"                                                              \
        "str     %[t], %[m_end]             \n"                                                              \
        "1:                                 \n"                                                              \
        "ldr     %[at], %[m_pixels]         \n"                                                              \
        "ldr     %[taps], %[m_taps]         \n"                                                              \
        "ldr     %[n], %[m_rows]            \n"                                                              \
        "ldr     %[t], %[m_start]           \n"                                                              \
        "ldr     r12, %[m_start_step]      \n"                                                               \
        "ldr     r4, [%[t]]              \n"                                                                 \
        "ldr     r5, [%[t], #4]          \n"                                                                 \
        "ldr     r6, [%[t], #8]          \n"                                                                 \
        "ldr     r8, [%[t], #12]         \n"                                                                 \
        "add     %[t], %[t], r12           \n"                                                               \
        "add     %[o], %[at], #" advance "  \n"                                                              \
        "str     %[t], %[m_start]           \n"                                                              \
        "str     %[o], %[m_pixels]          \n" first steps_of_row                                           \
        "subs    %[n], %[n], #1             \n"                                                              \
        "add     %[at], %[at], %[over]      \n" next                                                         \
        "ldr     %[t], %[m_sums]            \n"                                                              \
        "ldr     %[o], %[m_end]             \n"                                                              \
        "str     r5, [%[t], #4]          \n"                                                                 \
        "str     r6, [%[t], #8]          \n"                                                                 \
        "str     r8, [%[t], #12]         \n"                                                                 \
        "str     r4, [%[t]], #16         \n"                                                                 \
        "str     %[t], %[m_sums]            \n"                                                              \
        "cmp     %[t], %[o]                 \n"                                                              \
        "blo     1b                         \n"                                                              \
        "ldr     %[t], %[m_top]             \n"                                                              \
        "ldr     r9, %[m_stride]          \n"                                                                \
        "ldr     r10, %[m_end_top]         \n"                                                               \
        "add     %[t], %[t], r9           \n"                                                                \
        "str     %[o], %[m_sums]            \n"                                                              \
        "str     %[t], %[m_top]             \n"                                                              \
        "cmp     %[t], r10                 \n"                                                               \
        "bne     4b                         \n" stubs                                                        \
        "3:                                 \n"                                                              \
        : [o] "=&r"(o), [t] "=&r"(t), [n] "=&r"(n), [at] "=&r"(at), [taps] "=&r"(tap),                       \
          [entry] "=&r"(entry), [m_top] "+m"(all.top), [m_sums] "+m"(all.sums), [m_start] "+m"(all.start),   \
          [m_pixels] "=m"(pixels), [m_taps] "=m"(first_taps), [m_rows] "=m"(rows), [m_end] "=m"(end)         \
        : [over] "r"(over), [m_steps] "m"(all.steps), [m_start_step] "m"(all.start_step),                    \
          [m_height] "m"(all.height), [m_kernel_h] "m"(all.kernel_h), [m_lines] "m"(all.lines),              \
          [m_begin] "m"(all.begin), [m_pitch] "m"(all.pitch), [m_block] "m"(all.block),                      \
          [m_row_bytes] "m"(all.row_bytes), [m_width] "m"(all.width), [m_stride] "m"(all.stride),            \
          [m_end_top] "m"(all.end_top)                                                                       \
        : "r4", "r5", "r6", "r8", "r9", "r10", "r12", "cc", "memory")
/* clang-format on */
#else
/* Adds a kernel row to the sums of four outputs; returns the taps that follow. The first is for a stride
 * of 1. */
static inline const thimble_pair *
add_row(const thimble_pair *pixels, const thimble_pair *taps, int32_t steps, int32_t *sums)
{
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    uint32_t left = *pixels++;
    for (; steps > 0; steps--, taps += 2) {
        const uint32_t right = *pixels++;
        s0 = thimble_smlad(left, taps[0], s0);
        s1 = thimble_smlad(left, taps[1], s1);
        s2 = thimble_smlad(right, taps[0], s2);
        s3 = thimble_smlad(right, taps[1], s3);
        left = right;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    return taps;
}

static inline const thimble_pair *
add_row_of_two(const thimble_pair *pixels, const thimble_pair *taps, int32_t steps, int32_t *sums)
{
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    for (; steps > 0; steps--, pixels++) {
        const uint32_t tap = *taps++;
        s0 = thimble_smlad(pixels[0], tap, s0);
        s1 = thimble_smlad(pixels[1], tap, s1);
        s2 = thimble_smlad(pixels[2], tap, s2);
        s3 = thimble_smlad(pixels[3], tap, s3);
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    return taps;
}
#endif

static __attribute__((noinline)) THIMBLE_ASM_FUNCTION void sum_fours(rows_of_fours all, int32_t stride)
{
#if THIMBLE_ASM
    int32_t n, rows;
    uint32_t o, t;
    const int16_t *at, *pixels;
    const thimble_pair *tap, *first_taps;
    const void *entry;
    int32_t *end;
    if (stride == 1) {
        const int32_t over = all.apart - 4 * (all.steps + UNIT_AHEAD);
        ROWS_OF_FOURS("8", UNIT_ENTRY, UNIT_FIRST, UNIT_STEPS, UNIT_NEXT, UNIT_STUBS);
    } else {
        const int32_t over = all.apart - 4 * all.steps;
        ROWS_OF_FOURS("16", "1", ANY_FIRST, STEPS_OF_TWO, ANY_NEXT, "");
    }
#else
    const int32_t line = all.pitch / 2;
    for (; all.top != all.end_top; all.top += all.stride) {
        const int32_t first = all.top < 0 ? -all.top : 0, below = all.height - all.top;
        const int32_t rows = (below < all.kernel_h ? below : all.kernel_h) - first;
        const int16_t *pixels = all.lines + (all.top + first - all.begin) * line;
        int32_t *const end = all.sums + all.width / 4;
        for (int32_t *sums = all.sums; sums < end; sums += 4, pixels += 4 * stride) {
            const thimble_pair *tap = all.block + first * (all.row_bytes / 4);
            const int16_t *row = pixels;
            for (int32_t i = 0; i < 4; i++) {
                sums[i] = all.start[i];
            }
            all.start += all.start_step / 4;
            for (int32_t left = rows; left > 0; left--, row += all.apart / 2) {
                const thimble_pair *pixel = (const thimble_pair *)(const void *)row;
                tap = stride == 1 ? add_row(pixel, tap, all.steps, sums)
                                  : add_row_of_two(pixel, tap, all.steps, sums);
            }
        }
        all.sums = end;
    }
#endif
}

/* How taps lie in scratch: so many words a step, in blocks of at most so many steps of all kernel rows.
 * `fours`: whether outputs are computed four at a time. A single kernel row of many steps is then `rows` of
 * as many steps each, the last one's with taps of 0 at the end. */
typedef struct {
    int32_t words, steps, most, fours, rows;
} taps_layout;

static taps_layout layout_of(const thimble_conv_shape *shape)
{
    const int32_t last_top = (shape->output_h - 1) * shape->stride_h - shape->pad_top;
    const int32_t seen = shape->pad_top < shape->kernel_h && last_top < shape->input_h;
    const int32_t fours = seen && shape->dilation_h == 1 && shape->dilation_w == 1 && shape->stride_w <= 2;
    const int32_t unit = fours && shape->stride_w == 1;
    const int32_t steps = unit ? shape->kernel_w / 2 + 1 : (shape->kernel_w + 1) / 2;
    const int32_t rows = THIMBLE_ASM && fours && shape->kernel_h == 1 ? (steps + STEPS - 1) / STEPS : 1;
    const int32_t each = (steps + rows - 1) / rows, most = THIMBLE_ASM && fours && rows == 1 ? STEPS : each;
    const taps_layout layout = {unit ? 2 : 1, rows * each, most, fours, rows};
    return layout;
}

/* Sums of so many rows of outputs, four outputs at a time. `top`: the image row of the first one's first
 * kernel row; `lines` begins with image row `begin`. */
static void sum_rows(const thimble_conv_shape *shape,
                     const taps_layout *layout,
                     int32_t rows,
                     int32_t top,
                     int32_t begin,
                     const int16_t *lines,
                     int32_t line,
                     const thimble_pair *taps,
                     int32_t *sums)
{
    static const int32_t zeros[4] = {0, 0, 0, 0};
    const int32_t stride = shape->stride_h, parts = layout->rows,
                  several = layout->most < layout->steps && parts == 1;
    const int32_t at_once = several ? 1 : rows; /* rows whose sums are complete at the end */
    rows_of_fours all = {top,
                         top,
                         stride,
                         shape->input_h + parts - 1,
                         shape->kernel_h + parts - 1,
                         lines,
                         begin,
                         2 * line,
                         parts > 1 ? 4 * layout->most : 2 * line,
                         taps,
                         0,
                         0,
                         zeros,
                         0,
                         sums,
                         4 * shape->output_w};
    for (; rows > 0; rows -= at_once, top += at_once * stride, sums += at_once * shape->output_w) {
        all.block = taps;
        all.lines = lines;
        all.end_top = top + at_once * stride;
        all.start = zeros;
        all.start_step = 0;
        for (int32_t left = layout->steps / parts; left > 0; left -= layout->most) {
            const int32_t steps = left < layout->most ? left : layout->most;
            all.top = top;
            all.sums = sums;
            all.steps = steps;
            all.row_bytes = 4 * steps * layout->words;
            sum_fours(all, shape->stride_w);
            all.block += shape->kernel_h * steps * layout->words;
            all.lines += 2 * steps;
            all.start = sums;
            all.start_step = 16;
        }
    }
}

/* The kernel rows that are in the image, and the first one's image row. */
typedef struct {
    int32_t first, last, first_y;
} kernel_rows;

/* Of outputs whose first kernel row is image row `top`. */
static inline kernel_rows rows_of(const thimble_conv_shape *shape, int32_t top)
{
    const int32_t dilation = shape->dilation_h;
    int32_t first = 0, last = shape->kernel_h, bottom = top + (last - 1) * dilation;
    for (; top < 0; top += dilation) {
        first++;
    }
    for (; bottom >= shape->input_h; bottom -= dilation) {
        last--;
    }
    const kernel_rows rows = {first, last, top};
    return rows;
}

/* Sums of one output row of any kernel, two at a time, as `sum_rows` has them. */
static void sum_any(const thimble_conv_shape *shape,
                    const taps_layout *layout,
                    int32_t top,
                    int32_t begin,
                    const int16_t *lines,
                    int32_t line,
                    const thimble_pair *taps,
                    int32_t *sums)
{
    const kernel_rows seen = rows_of(shape, top);
    const int32_t pairs = layout->steps;
    lines += (seen.first_y - begin) * line;
    for (int32_t left = shape->output_w; left > 0; left -= 2, sums += 2) {
        const int32_t second = left > 1 ? shape->stride_w : 0;
        const thimble_pair *tap = taps + seen.first * pairs;
        const int16_t *start = lines;
        int32_t s = 0, t = 0;
        for (int32_t row = seen.first; row < seen.last; row++, start += shape->dilation_h * line) {
            const int16_t *x = start;
            if (shape->dilation_w == 1) {
                for (int32_t pair = pairs; pair > 0; pair--, x += 2, tap++) {
                    s = thimble_smlad(thimble_read_word(x), *tap, s);
                    t = thimble_smlad(thimble_read_word(x + second), *tap, t);
                }
            } else {
                for (int32_t column = 0; column < shape->kernel_w; column++, x += shape->dilation_w) {
                    const uint32_t both = tap[column / 2];
                    const int32_t weight = column % 2 != 0 ? thimble_top(both) : thimble_bottom(both);
                    s = thimble_add(s, x[0] * weight);
                    t = thimble_add(t, x[second] * weight);
                }
                tap += pairs;
            }
        }
        lines += shape->stride_w + second;
        sums[0] = s;
        sums[1] = t;
    }
}

static inline int32_t twice(int32_t sum, uint32_t bias)
{
    return (int32_t)(2 * (uint32_t)sum + bias);
}

/* Sums (without bias) to int8, `step` bytes apart. */
static void put_outputs(const int32_t *sums,
                        int32_t count,
                        const int32_t *parameters,
                        int32_t code,
                        const thimble_requant *requant,
                        int8_t *to,
                        int32_t step)
{
    const int32_t bias = parameters[0], multiplier = parameters[1];
#ifdef __ARM_ARCH_6M__
    if (code >= 0 && parameters[2] == thimble_rounding(requant, code)) {
        const int8_t shift = (int8_t)code;
        thimble_row_scaling scaling = {parameters, parameters + 1, &shift, thimble_rounding(requant, 0)};
        thimble_requantize_rows_s8(sums, &scaling, 1, count, to, step);
        return;
    }
#endif
    if (code >= 0) {
        const int32_t rounding = parameters[2];
        uint32_t twice_bias = 2 * (uint32_t)bias;
#if THIMBLE_DSP
        __asm("" : "+r"(twice_bias)); /* one instruction adds it to a sum that is shifted */
#endif
        for (; count >= 4; count -= 4, sums += 4, to += 2 * step) {
            const int32_t a = twice(sums[0], twice_bias), b = twice(sums[1], twice_bias);
            const int32_t c = twice(sums[2], twice_bias), d = twice(sums[3], twice_bias);
            to[0] = (int8_t)thimble_requantize_doubled(a, multiplier, code, rounding);
            to[step] = (int8_t)thimble_requantize_doubled(b, multiplier, code, rounding);
            to += 2 * step;
            to[0] = (int8_t)thimble_requantize_doubled(c, multiplier, code, rounding);
            to[step] = (int8_t)thimble_requantize_doubled(d, multiplier, code, rounding);
        }
        for (; count > 0; count--, to += step) {
            *to = (int8_t)thimble_requantize_doubled(twice(*sums++, twice_bias), multiplier, code, rounding);
        }
        return;
    }
    for (; count > 0; count--, to += step) {
        *to = thimble_requantize_s8(thimble_add(*sums++, bias), multiplier, code, requant);
    }
}

#if THIMBLE_DSP
/* Four taps of a kernel row, of which `left` are to come; `fill` behind them. */
static inline uint32_t four_taps(const int8_t *from, int32_t left, uint32_t fill)
{
    if (left >= 4) {
        return thimble_read_word(from);
    }
    /* What lies before the first tap are the channel's other parameters. */
    return left > 0 ? (thimble_read_word(from + left - 4) >> (32 - 8 * left)) | (fill << (8 * left)) : fill;
}

/* Words of taps 2i and 2i + 1, less their zero point, for so many steps from tap `first` of all kernel rows;
 * if a step has two words, each is followed by one of taps 2i - 1 and 2i. Returns what follows. */
static THIMBLE_ASM_FUNCTION thimble_pair *put_steps(const thimble_conv_shape *shape,
                                                    const int8_t *filter,
                                                    int32_t first,
                                                    int32_t steps,
                                                    int32_t words,
                                                    thimble_pair *to)
{
    const int32_t width = shape->kernel_w;
    const uint32_t zero = (uint16_t)(int16_t)shape->weight_zero_point, zeros = zero * 0x10001U;
    const uint32_t fill = (zero & 0xFFU) * 0x01010101U;
    const int32_t fours = first < width ? (width - first) / 4 : 0,
                  whole = fours < steps / 2 ? fours : steps / 2;
    const int32_t last = width - first - 4 * whole;
    for (int32_t row = shape->kernel_h; row > 0; row--, filter += width) {
        const int8_t *from = filter + first;
        uint32_t before =
            first > 0 && first <= width ? (uint32_t)(from[-1] - shape->weight_zero_point) & 0xFFFFU : 0;
        for (int32_t count = whole; count > 0; count--, from += 4) {
            const uint32_t four = thimble_read_word(from);
            const uint32_t a = thimble_ssub16(thimble_sxtb16(four), zeros);
            const uint32_t b = thimble_ssub16(thimble_sxtb16_ror8(four), zeros);
            if (words == 1) {
                to[0] = thimble_bottoms(a, b);
                to[1] = thimble_tops(a, b);
                to += 2;
                continue;
            }
            to[0] = thimble_bottoms(a, b);
            to[1] = thimble_bottoms(before, a);
            to[2] = thimble_tops(a, b);
            to[3] = (b & 0xFFFFU) | (a & 0xFFFF0000U);
            before = b >> 16;
            to += 4;
        }
        for (int32_t rest = steps - 2 * whole, left = last; rest > 0; rest -= 2, left = 0) {
            const uint32_t four = four_taps(from, left, fill);
            const uint32_t a = thimble_ssub16(thimble_sxtb16(four), zeros);
            const uint32_t b = thimble_ssub16(thimble_sxtb16_ror8(four), zeros);
            *to++ = thimble_bottoms(a, b);
            if (words == 2) {
                *to++ = thimble_bottoms(before, a);
            }
            if (rest > 1) {
                *to++ = thimble_tops(a, b);
                if (words == 2) {
                    *to++ = (b & 0xFFFFU) | (a & 0xFFFF0000U);
                }
            }
            before = b >> 16;
        }
    }
    return to;
}
#else
static __attribute__((noinline)) thimble_pair *put_steps(const thimble_conv_shape *shape,
                                                         const int8_t *filter,
                                                         int32_t first,
                                                         int32_t steps,
                                                         int32_t words,
                                                         thimble_pair *to)
{
    const int32_t width = shape->kernel_w, zero = shape->weight_zero_point, end = first + 2 * steps;
    for (int32_t row = shape->kernel_h; row > 0; row--, filter += width) {
        uint32_t before = first > 0 && first <= width ? (uint32_t)(filter[first - 1] - zero) & 0xFFFFU : 0;
        for (int32_t i = first; i < end; i += 2) {
            const uint32_t even = i < width ? (uint32_t)(filter[i] - zero) & 0xFFFFU : 0;
            const uint32_t odd = i + 1 < width ? (uint32_t)(filter[i + 1] - zero) & 0xFFFFU : 0;
            *to++ = even | (odd << 16);
            if (words == 2) {
                *to++ = before | (even << 16);
            }
            before = odd;
        }
    }
    return to;
}
#endif

/* A channel's taps, in blocks of steps. */
static void
put_taps(const thimble_conv_shape *shape, const int8_t *filter, thimble_pair *taps, const taps_layout *layout)
{
    const int32_t most = shape->kernel_h == 1 ? layout->steps : layout->most;
    for (int32_t step = 0; step < layout->steps; step += most) {
        const int32_t left = layout->steps - step, steps = left < most ? left : most;
        taps = put_steps(shape, filter, 2 * step, steps, layout->words, taps);
    }
}

/* The lines of the image rows from `begin` to `end`; those up to `had`, from `kept_from` on, are moved to the
 * top. */
static THIMBLE_ASM_FUNCTION void put_band(const line_layout *layout,
                                          const int8_t *image,
                                          int32_t begin,
                                          int32_t end,
                                          int32_t kept_from,
                                          int32_t had,
                                          int16_t *lines)
{
    const int32_t values = layout->values, kept = had > begin ? had - begin : 0;
    if (kept > 0 && begin > kept_from) {
        (void)memmove(lines, lines + (begin - kept_from) * values, (size_t)(kept * values) * sizeof(*lines));
    }
    int16_t *to = lines + kept * values + layout->before;
    for (int32_t row = begin + kept; row < end; row++, to += values) {
        put_line(layout, image + row * layout->row_step, to);
    }
}

void thimble_depthwise_conv_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output)
{
    const int32_t line = line_values(shape);
    const int32_t extent = (shape->kernel_h - 1) * shape->dilation_h + 1;
    const int32_t seen_lines = (shape->band - 1) * shape->stride_h + extent;
    const int32_t most_lines = seen_lines < shape->input_h ? seen_lines : shape->input_h;
    const taps_layout taps_as = layout_of(shape);
    int16_t *const lines = scratch;
    thimble_pair *const taps = (thimble_pair *)scratch + most_lines * (line / 2);
    int32_t *const sums =
        (int32_t *)scratch + most_lines * (line / 2) + shape->kernel_h * taps_as.steps * taps_as.words;
    const int32_t words = 3 + (1 + shape->kernel_h * shape->kernel_w + 3) / 4;
    const int32_t multiplier = shape->output_c / shape->input_c;
    const int32_t input_line =
        thimble_line(shape->input_line, shape->transposed ? shape->input_h : shape->input_w, shape->input_c);
    const int32_t output_line = thimble_line(
        shape->output_line, shape->transposed ? shape->output_h : shape->output_w, shape->output_c);
    int8_t *const image_out = output;
    const int32_t output_x_step = shape->transposed ? output_line : shape->output_c;
    const int32_t output_y_step = shape->transposed ? shape->output_c : output_line;
    const int32_t room = line - shape->pad_left;
    const line_layout layout = {room < 0 ? line : shape->pad_left,
                                room < 0 ? 0 : (room < shape->input_w ? room : shape->input_w),
                                shape->transposed ? input_line : shape->input_c,
                                shape->transposed ? shape->input_c : input_line,
                                line,
                                shape->input_zero_point};

    (void)memset(lines, 0, (size_t)(most_lines * line) * sizeof(*lines));
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < shape->output_c; channel++, at += words) {
            const int8_t *const bytes = (const int8_t *)(at + 3);
            const int8_t *const image = input + channel / multiplier;
            int8_t *to = output + channel;
            int32_t top = -shape->pad_top, kept_from = 0, had = 0;
            put_taps(shape, bytes + 1, taps, &taps_as);
            for (int32_t y = 0; y < shape->output_h; y += shape->band) {
                const int32_t rows = shape->output_h - y < shape->band ? shape->output_h - y : shape->band;
                const int32_t below = top + (rows - 1) * shape->stride_h + extent;
                const int32_t begin = top < 0 ? 0 : top;
                const int32_t end = below < shape->input_h ? below : shape->input_h;
                put_band(&layout, image, begin, end, kept_from, had, lines);
                kept_from = begin;
                had = end;
                if (taps_as.fours) {
                    sum_rows(shape, &taps_as, rows, top, begin, lines, line, taps, sums);
                    top += rows * shape->stride_h;
                } else {
                    for (int32_t row = 0; row < rows; row++, top += shape->stride_h) {
                        sum_any(shape, &taps_as, top, begin, lines, line, taps, sums + row * shape->output_w);
                    }
                }
                if (shape->transposed || shape->output_line) {
                    for (int32_t row = 0; row < rows; row++, to += output_y_step) {
                        const int32_t *const row_sums = sums + row * shape->output_w;
                        put_outputs(row_sums, shape->output_w, at, bytes[0], requant, to, output_x_step);
                    }
                } else {
                    put_outputs(sums, rows * shape->output_w, at, bytes[0], requant, to, output_x_step);
                    to += rows * output_y_step;
                }
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += shape->output_h * shape->output_w * shape->output_c;
    }
    thimble_clamp_image_s8(shape, requant, image_out);
}
