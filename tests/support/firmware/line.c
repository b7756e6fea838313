/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The firmware's service loop on this machine, as a board at the end of a line: it is fed bytes and gives
 * bytes, can lose its power at any of them, and can be given another firmware. Its model is wrong on
 * purpose when the firmware is another, so that an answer taken from it is noticed.
 */
#include <ucontext.h>

static unsigned firmware;

/* The models of two firmwares, where the header declares those of one. */
#define thimble_models line_models
#include "thimble_model.h"
#undef thimble_models
#define thimble_models (line_models + firmware)

#include "service.c"

#define TENSOR_BYTES 600u
#define OUTPUT_AT 300u
#define ARENA_BYTES (OUTPUT_AT + TENSOR_BYTES)

uint32_t thimble_stack_low[1];
uint32_t thimble_stack_high[1];
thimble_fault_record thimble_fault;

static uint8_t arena[ARENA_BYTES];
static thimble_count counts[2];
static ucontext_t host;
static ucontext_t board;
static uint8_t stack[1u << 16];
static const uint8_t *fed;
static size_t fed_bytes;
static uint8_t *answers;
static size_t answered;
static size_t room;
static int32_t wants_reset;

/* The output lies across the input, as the planner likes it. */
static int32_t run(uint8_t *memory)
{
    uint8_t input[TENSOR_BYTES];
    memcpy(input, memory, sizeof input);
    counts[0] = 0;
    for (uint32_t i = 0; i < TENSOR_BYTES; i++) {
        memory[OUTPUT_AT + i] = (uint8_t)(3u * input[i] + i + firmware);
        counts[0] += input[i];
    }
    counts[1] = counts[0] / 2u;
    return 0;
}

static const thimble_tensor inputs[] = {{"in", arena, NULL, TENSOR_BYTES, 1}};
static const thimble_tensor outputs[] = {{"out", arena + OUTPUT_AT, NULL, TENSOR_BYTES, 1}};
#define MODEL(which)                                                                                         \
    {                                                                                                        \
        "line", "netduinoplus2", {which}, 1, 1, 2, inputs, outputs, counts, NULL, arena, ARENA_BYTES, run,   \
            NULL, NULL, 0, NULL                                                                              \
    }

const thimble_model line_models[] = {MODEL(0), MODEL(1)};
const uint32_t thimble_model_count = 1;

int32_t thimble_measured_run(uint64_t *total)
{
    const int32_t status = run(arena);
    *total = counts[0] + counts[1];
    return status;
}

void thimble_state_reset(const thimble_model *model)
{
    (void)model;
}

uint32_t thimble_stack_used_bytes(void)
{
    return 0;
}

void thimble_arena_paint(const thimble_model *model)
{
    memset(model->arena, THIMBLE_ARENA_PAINT, model->arena_bytes);
}

uint32_t thimble_arena_used_bytes(void)
{
    return ARENA_BYTES;
}

void thimble_fault_mark(uint32_t magic)
{
    thimble_fault.magic = magic;
}

void thimble_system_reset(void)
{
    wants_reset = 1;
    for (;;) {
        swapcontext(&board, &host);
    }
}

uint32_t thimble_board_clock_hz(void)
{
    return 0;
}

void thimble_emulator_exit(void)
{
    thimble_system_reset();
}

uint8_t thimble_uart_get(void)
{
    while (fed_bytes == 0) {
        swapcontext(&board, &host);
    }
    fed_bytes--;
    return *fed++;
}

void thimble_uart_put(uint8_t byte)
{
    if (answered < room) {
        answers[answered++] = byte;
    }
}

void thimble_uart_flush(void)
{
}

/* Everything as after power-on; `which` firmware it then carries (0: the right one). */
void line_power_on(uint32_t which)
{
    firmware = which;
    memset(&frame, 0, sizeof frame);
    memset(&last, 0, sizeof last);
    memset(counts, 0, sizeof counts);
    thimble_model_index = 0;
    thimble_arena_paint(thimble_the_model);
    served = 0;
    fed_bytes = 0;
    wants_reset = 0;
    getcontext(&board);
    board.uc_stack.ss_sp = stack;
    board.uc_stack.ss_size = sizeof stack;
    board.uc_link = NULL;
    makecontext(&board, thimble_serve, 0);
}

/* Gives the board bytes; returns how many it answered into `reply`. */
size_t line_feed(const uint8_t *data, size_t bytes, uint8_t *reply_to, size_t reply_room)
{
    fed = data;
    fed_bytes = bytes;
    answers = reply_to;
    answered = 0;
    room = reply_room;
    swapcontext(&host, &board);
    if (wants_reset) {
        line_power_on(firmware);
    }
    return answered;
}
