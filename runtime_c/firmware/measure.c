/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of a whole run and of each operator, less what the hooks themselves take. */
#include "thimble_board.h"
#include "thimble_counter.h"
#include "thimble_firmware.h"

#ifdef THIMBLE_PROFILE
#include "thimble_hooks.h"

volatile thimble_count thimble_operator_mark;
volatile uint32_t thimble_operator_running;

static void clear_counts(void)
{
    for (uint32_t i = 0; i < thimble_the_model->operator_count; i++) {
        thimble_operator_counts[i] = 0;
    }
}
#endif

#ifdef THIMBLE_KERNELS
static int32_t nothing(uint8_t *arena)
{
    (void)arena;
    return 0;
}

/* The kernel that is measured in place of the model, which is empty. */
static int32_t (*kernel)(uint8_t *arena) = nothing;
#define MEASURED kernel
#else
#define MEASURED thimble_the_model->run
#endif

#ifdef THIMBLE_EMULATED
/* Stores to them tell runtime_c/qemu/instruction_counts.c what is the run that is measured. */
volatile uint8_t thimble_run_begins;
volatile uint8_t thimble_run_ends;
#define MARK(byte) ((byte) = 1)
#else
#define MARK(byte) ((void)0)
#endif

int32_t thimble_measured_run(uint64_t *total)
{
    thimble_counter_init();
    thimble_count empty = thimble_counter();
    empty = thimble_counter() - empty;
#ifdef THIMBLE_PROFILE
    /* The last word of the table is a spare one: eight empty operators show what the hooks take. */
    const uint32_t spare = thimble_the_model->operator_count;
    clear_counts();
    thimble_operator_counts[spare] = 0;
    thimble_count hooks = thimble_counter();
    for (uint32_t repeat = 0; repeat < 8u; repeat++) {
        THIMBLE_OP_BEGIN(THIMBLE_NO_OPERATOR);
        THIMBLE_OP_END(spare);
    }
    hooks = (thimble_counter() - hooks - empty) / 8u;
    const thimble_count inside = thimble_operator_counts[spare] / 8u;
#endif
    MARK(thimble_run_begins);
    const thimble_count start = thimble_counter();
    const int32_t status = MEASURED(thimble_the_model->arena);
    thimble_count whole = thimble_counter() - start - empty;
    MARK(thimble_run_ends);
#ifdef THIMBLE_PROFILE
    thimble_operator_running = 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < spare; i++) {
        const thimble_count count = thimble_operator_counts[i];
        if (count != 0) {
            const uint32_t calls =
                thimble_the_model->operator_calls ? thimble_the_model->operator_calls[i] : 1u;
            const thimble_count taken = inside * calls;
            thimble_operator_counts[i] = count > taken ? count - taken : 0;
            whole -= hooks * calls;
            sum += thimble_operator_counts[i];
        }
    }
    /* The whole may have wrapped where no operator has: what lies outside them is short. */
    *total = sizeof whole == sizeof sum ? whole
                                        : sum + (uint64_t)(int64_t)(int32_t)((uint32_t)whole - (uint32_t)sum);
#else
    *total = whole;
#endif
    return status;
}

#ifdef THIMBLE_KERNELS
/* Each kernel is a model of one operator, whose count is the first. */
int32_t thimble_timed_kernel(uint32_t index, uint64_t *count)
{
    uint64_t total;
    kernel = thimble_kernels[index];
    const int32_t status = thimble_measured_run(&total);
    *count = thimble_operator_counts[0];
    return status;
}
#endif
