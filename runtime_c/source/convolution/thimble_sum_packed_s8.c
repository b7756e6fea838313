/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_packed.h"

/* Sums of a run add up in two ways: whole words, and their upper halves, exact as int32. What the lower half
 * borrows from the upper one where it is negative comes back as its sign, bit 15. */

#if defined(__ARM_ARCH_6M__) && defined(__GNUC__) && !defined(__clang__)
/* r0: taps, r1: runs, r2 and r3: two pixels each, r4: weights, r5: a product. The eight sums of a run are in
 * r8 to r12, lr, r6 and r7. On the stack: for each of them the sum of words and of upper halves; then `end`
 * and `sums`. A multiplication overwrites a factor, so each weight is sign-extended anew. */
#define CHANNEL(put, first, second)                                                                          \
    "sxtb r5, r4\n\t"                                                                                        \
    "muls r5, r2\n\t" put " " first ", r5\n\t"                                                               \
    "sxtb r5, r4\n\t"                                                                                        \
    "muls r5, r3\n\t" put " " second ", r5\n\t"                                                              \
    "asrs r4, r4, #8\n\t"

#define LAST_CHANNEL(put)                                                                                    \
    "muls r2, r4\n\t" put " r6, r2\n\t"                                                                      \
    "muls r3, r4\n\t" put " r7, r3\n\t"

#define TAP(put)                                                                                             \
    "ldm r0!, {r2, r3}\n\t"                                                                                  \
    "ldm r1!, {r4}\n\t" CHANNEL(put, "r8", "r9") CHANNEL(put, "r10", "r11") CHANNEL(put, "r12", "lr")        \
        LAST_CHANNEL(put)

/* r4: the words of this sum, which it leaves behind. */
#define KEEP(from)                                                                                           \
    "ldr r2, [r4]\n\t"                                                                                       \
    "ldr r3, [r4, #4]\n\t"                                                                                   \
    "adds r2, r2, " from "\n\t"                                                                              \
    "asrs " from ", " from ", #16\n\t"                                                                       \
    "adcs r3, " from "\n\t"                                                                                  \
    "stm r4!, {r2, r3}\n\t"

#define KEEP_HIGH(from) "mov r5, " from "\n\t" KEEP("r5")

#pragma GCC diagnostic ignored "-Wunused-parameter" /* the assembly finds them in registers */
__attribute__((naked, noinline)) const int32_t *
thimble_sum_packed_s8(const uint32_t *columns, const uint32_t *end, const int32_t *runs, uint32_t *sums)
{
    __asm volatile(".syntax unified\n\t"
                   "push {r4, r5, r6, r7, lr}\n\t"
                   "mov r4, r8\n\t"
                   "mov r5, r9\n\t"
                   "mov r6, r10\n\t"
                   "mov r7, r11\n\t"
                   "push {r4, r5, r6, r7}\n\t"
                   "push {r1, r3}\n\t"
                   "mov r1, r2\n\t"
                   "movs r4, #0\n\t"
                   "movs r5, #0\n\t"
                   "movs r6, #0\n\t"
                   "movs r7, #0\n\t"
                   "push {r4, r5, r6, r7}\n\t"
                   "push {r4, r5, r6, r7}\n\t"
                   "push {r4, r5, r6, r7}\n\t"
                   "push {r4, r5, r6, r7}\n"
                   "1:\n\t" TAP("mov")
                   /* 54 bytes a tap: those that do not follow are skipped. */
                   "ldm r1!, {r5}\n\t"
                   "movs r4, #54\n\t"
                   "muls r5, r4\n\t"
                   "adr r4, 2f\n\t"
                   "subs r4, r4, r5\n\t"
                   "mov pc, r4\n\t"
                   ".balign 4\n\t" TAP("add") TAP("add") TAP("add") TAP("add") TAP("add") TAP("add")
                       TAP("add") TAP("add") "2:\n\t"
                                             "mov r4, sp\n\t" KEEP_HIGH("r8") KEEP_HIGH("r9") KEEP_HIGH("r10")
                                                 KEEP_HIGH("r11") KEEP_HIGH("r12") KEEP_HIGH("lr") KEEP("r6")
                                                     KEEP("r7") "ldr r2, [sp, #64]\n\t"
                                                                "cmp r0, r2\n\t"
                                                                "beq 3f\n\t"
                                                                "b 1b\n"
                                                                "3:\n\t"
                                                                "ldr r0, [sp, #68]\n\t"
                                                                "mov r4, sp\n\t"
                                                                ".rept 8\n\t"
                                                                "ldm r4!, {r2, r3}\n\t"
                                                                "lsls r5, r3, #16\n\t"
                                                                "subs r2, r2, r5\n\t"
                                                                "stm r0!, {r2, r3}\n\t"
                                                                ".endr\n\t"
                                                                "mov r0, r1\n\t"
                                                                "add sp, #72\n\t"
                                                                "pop {r4, r5, r6, r7}\n\t"
                                                                "mov r8, r4\n\t"
                                                                "mov r9, r5\n\t"
                                                                "mov r10, r6\n\t"
                                                                "mov r11, r7\n\t"
                                                                "pop {r4, r5, r6, r7, pc}\n\t");
}
#elif (defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_8M_MAIN__)) && defined(__GNUC__) && !defined(__clang__)
/* Also for a Cortex-M33 without the DSP extension. r0: taps, r1: runs, r2 and r3: two pixels each, r4 and lr:
 * weights. The eight sums of a run are in r5 to r12. On the stack: for each of them the sum of words and of
 * upper halves; then `end` and `sums`. */
#define FIRST(sum, pixels, weight) "mul " sum ", " pixels ", " weight "\n\t"
#define FURTHER(sum, pixels, weight) "mla " sum ", " pixels ", " weight ", " sum "\n\t"

#define TAP(product)                                                                                         \
    "ldrd r2, r3, [r0], #8\n\t"                                                                              \
    "ldrsb.w r4, [r1, #1]\n\t"                                                                               \
    "ldrsb.w lr, [r1, #2]\n\t" product("r7", "r2", "r4") product("r8", "r3", "r4") product("r9", "r2", "lr") \
        product("r10", "r3", "lr") "ldrsb.w r4, [r1, #3]\n\t"                                                \
                                   "ldrsb.w lr, [r1], #4\n\t" product("r11", "r2", "r4")                     \
                                       product("r12", "r3", "r4") product("r5", "r2", "lr")                  \
                                           product("r6", "r3", "lr")

#define KEEP(from, at)                                                                                       \
    "ldrd r2, r3, [sp, #" at "]\n\t"                                                                         \
    "add r2, r2, " from "\n\t"                                                                               \
    "asrs " from ", " from ", #16\n\t"                                                                       \
    "adc r3, r3, " from "\n\t"                                                                               \
    "strd r2, r3, [sp, #" at "]\n\t"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* the assembly finds them in registers */
__attribute__((naked, noinline)) const int32_t *
thimble_sum_packed_s8(const uint32_t *columns, const uint32_t *end, const int32_t *runs, uint32_t *sums)
{
    __asm volatile("push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n\t"
                   "push {r1, r3}\n\t"
                   "mov r1, r2\n\t"
                   "movs r4, #0\n\t"
                   "movs r5, #0\n\t"
                   "movs r6, #0\n\t"
                   "movs r7, #0\n\t"
                   "push {r4, r5, r6, r7}\n\t"
                   "push {r4, r5, r6, r7}\n\t"
                   "push {r4, r5, r6, r7}\n\t"
                   "push {r4, r5, r6, r7}\n"
                   "1:\n\t" TAP(FIRST)
                   /* 52 bytes a tap: those that do not follow are skipped. */
                   "ldr r4, [r1], #4\n\t"
                   "mov lr, #52\n\t"
                   "mul r4, r4, lr\n\t"
                   "adr.w lr, 2f\n\t"
                   "sub lr, lr, r4\n\t"
                   "mov pc, lr\n\t"
                   ".balign 4\n\t" TAP(FURTHER) TAP(FURTHER) TAP(FURTHER) TAP(FURTHER) TAP(FURTHER)
                       TAP(FURTHER) TAP(FURTHER) TAP(FURTHER) "2:\n\t" KEEP("r5", "0") KEEP("r6", "8")
                           KEEP("r7", "16") KEEP("r8", "24") KEEP("r9", "32") KEEP("r10", "40")
                               KEEP("r11", "48")
                                   KEEP("r12", "56") "ldr r2, [sp, #64]\n\t"
                                                     "cmp r0, r2\n\t"
                                                     "bne.w 1b\n\t"
                                                     "ldr r0, [sp, #68]\n\t"
                                                     ".rept 8\n\t"
                                                     "pop {r2, r3}\n\t"
                                                     "sub r2, r2, r3, lsl #16\n\t"
                                                     "stm r0!, {r2, r3}\n\t"
                                                     ".endr\n\t"
                                                     "mov r0, r1\n\t"
                                                     "add sp, #8\n\t"
                                                     "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n\t");
}
#else
static inline uint32_t weight(uint32_t word, int32_t shift)
{
    return (uint32_t)(int32_t)(int8_t)(uint8_t)(word >> shift);
}

static void keep(uint32_t sum, uint32_t *kept)
{
    kept[0] += sum;
    kept[1] += (uint32_t)((int32_t)sum >> 16) + ((sum >> 15) & 1U);
}

const int32_t *
thimble_sum_packed_s8(const uint32_t *columns, const uint32_t *end, const int32_t *runs, uint32_t *sums)
{
    for (int32_t i = 0; i < 16; i++) {
        sums[i] = 0;
    }
    while (columns != end) {
        uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
        const int32_t *next = runs + 2;
        const int32_t *const last = next + runs[1];
        for (uint32_t word = (uint32_t)*runs;; word = (uint32_t)*next++) {
            const uint32_t a = columns[0], b = columns[1];
            const uint32_t w0 = weight(word, 0), w1 = weight(word, 8), w2 = weight(word, 16),
                           w3 = weight(word, 24);
            columns += 2;
            s0 += a * w0;
            s1 += b * w0;
            s2 += a * w1;
            s3 += b * w1;
            s4 += a * w2;
            s5 += b * w2;
            s6 += a * w3;
            s7 += b * w3;
            if (next == last) {
                break;
            }
        }
        runs = last;
        keep(s0, sums);
        keep(s1, sums + 2);
        keep(s2, sums + 4);
        keep(s3, sums + 6);
        keep(s4, sums + 8);
        keep(s5, sums + 10);
        keep(s6, sums + 12);
        keep(s7, sums + 14);
    }
    for (int32_t i = 0; i < 16; i += 2) {
        sums[i] -= sums[i + 1] << 16;
    }
    return runs;
}
#endif
