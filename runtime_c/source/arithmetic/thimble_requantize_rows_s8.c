/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_rows.h"

#include "thimble_requantize_s8.h"

#if defined(__ARM_ARCH_6M__) && defined(__GNUC__) && !defined(__clang__)
/* r0: sums, r1: outputs. r8: twice the bias, r9 and r10: halves of the multiplier, r11: rounding, r12: shift
 * and 1, lr: step. On the stack: the end of this row's sums, `scaling`, rows, bytes of a row. The product is
 * thimble_upper_product's; its half, 2^15 in the sum of the middle halves, is the carry of that sum's shift.
 */
__attribute__((naked, noinline)) void thimble_requantize_rows_s8(
    const int32_t *sums, thimble_row_scaling *scaling, int32_t rows, int32_t count, int8_t *to, int32_t step)
{
    __asm volatile(".syntax unified\n\t"
                   "push {r4, r5, r6, r7, lr}\n\t"
                   "mov r4, r8\n\t"
                   "mov r5, r9\n\t"
                   "mov r6, r10\n\t"
                   "mov r7, r11\n\t"
                   "push {r4, r5, r6, r7}\n\t"
                   "lsls r3, r3, #2\n\t"
                   "push {r0, r1, r2, r3}\n\t"
                   "ldr r1, [sp, #52]\n\t"
                   "ldr r4, [sp, #56]\n\t"
                   "mov lr, r4\n"
                   "1:\n\t"
                   "ldr r2, [sp, #12]\n\t"
                   "adds r2, r2, r0\n\t"
                   "str r2, [sp]\n\t"
                   "ldr r7, [sp, #4]\n\t"
                   "ldm r7!, {r2, r3, r4, r5}\n\t"
                   "subs r7, r7, #16\n\t"
                   "ldm r2!, {r6}\n\t"
                   "lsls r6, r6, #1\n\t"
                   "mov r8, r6\n\t"
                   "ldrb r6, [r4]\n\t"
                   "adds r4, r4, #1\n\t"
                   "lsls r5, r6\n\t"
                   "mov r11, r5\n\t"
                   "adds r6, r6, #1\n\t"
                   "mov r12, r6\n\t"
                   "ldm r3!, {r6}\n\t"
                   "stm r7!, {r2, r3, r4}\n\t"
                   "uxth r5, r6\n\t"
                   "mov r9, r5\n\t"
                   "asrs r6, r6, #16\n\t"
                   "mov r10, r6\n"
                   "2:\n\t"
                   "ldm r0!, {r2}\n\t"
                   "lsls r2, r2, #1\n\t"
                   "add r2, r8\n\t"
                   "asrs r3, r2, #31\n\t"
                   "uxth r4, r2\n\t"
                   "asrs r2, r2, #16\n\t"
                   "mov r5, r9\n\t"
                   "mov r6, r10\n\t"
                   "movs r7, r5\n\t"
                   "muls r7, r4\n\t"
                   "muls r5, r2\n\t"
                   "muls r4, r6\n\t"
                   "muls r2, r6\n\t"
                   "lsrs r7, r7, #16\n\t"
                   "uxth r6, r5\n\t"
                   "adds r7, r7, r6\n\t"
                   "uxth r6, r4\n\t"
                   "adds r7, r7, r6\n\t"
                   "lsrs r7, r7, #16\n\t"
                   "adcs r2, r7\n\t"
                   "asrs r5, r5, #16\n\t"
                   "adds r2, r2, r5\n\t"
                   "asrs r4, r4, #16\n\t"
                   "adds r2, r2, r4\n\t"
                   "add r2, r11\n\t"
                   "adds r2, r2, r3\n\t"
                   "mov r3, r12\n\t"
                   "asrs r2, r3\n\t"
                   "sxtb r3, r2\n\t"
                   "cmp r3, r2\n\t"
                   "beq 3f\n\t"
                   "asrs r2, r2, #31\n\t"
                   "movs r3, #127\n\t"
                   "eors r2, r3\n"
                   "3:\n\t"
                   "strb r2, [r1]\n\t"
                   "add r1, lr\n\t"
                   "ldr r3, [sp]\n\t"
                   "cmp r0, r3\n\t"
                   "bne 2b\n\t"
                   "ldr r2, [sp, #8]\n\t"
                   "subs r2, r2, #1\n\t"
                   "str r2, [sp, #8]\n\t"
                   "bne 1b\n\t"
                   "add sp, #16\n\t"
                   "pop {r4, r5, r6, r7}\n\t"
                   "mov r8, r4\n\t"
                   "mov r9, r5\n\t"
                   "mov r10, r6\n\t"
                   "mov r11, r7\n\t"
                   "pop {r4, r5, r6, r7, pc}\n\t");
}
#else
void thimble_requantize_rows_s8(
    const int32_t *sums, thimble_row_scaling *scaling, int32_t rows, int32_t count, int8_t *to, int32_t step)
{
    for (; rows > 0; rows--) {
        const int32_t bias = *scaling->bias++, multiplier = *scaling->multiplier++;
        const int32_t code = *scaling->code++;
        const int32_t rounding = (int32_t)((uint32_t)scaling->twice_offset << code);
        for (int32_t left = count; left > 0; left--, to += step) {
            const int32_t sum = thimble_add(*sums++, bias);
            *to = (int8_t)thimble_requantize_fast(sum, multiplier, code, rounding);
        }
    }
}
#endif
