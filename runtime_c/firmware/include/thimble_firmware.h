/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the firmware to each other. */
#ifndef THIMBLE_FIRMWARE_H
#define THIMBLE_FIRMWARE_H

#include "thimble_frame.h"
#include "thimble_model.h"

#include <stdint.h>

#define THIMBLE_STACK_PAINT 0xC5C5C5C5u
#define THIMBLE_ARENA_PAINT 0xA7u
#define THIMBLE_FAULT_MAGIC 0xFA17FA17u
#define THIMBLE_START_WAITS 0x57A27002u /* a start-up waits in vain (waits.c) */
#define THIMBLE_NO_OPERATOR 0xFFFFFFFFu

/* Bounds of the stack, from the linker script; it grows down from `high` to `low`. */
extern uint32_t thimble_stack_low[];
extern uint32_t thimble_stack_high[];

/* Survives a reset. `words`: in the order of docs/protocol.md, "Fault record"; with THIMBLE_START_WAITS the
 * address of a register, bits, what they were to be, what the register held. `past` lies in another word of
 * 64 bits than `magic`. */
typedef struct {
    uint32_t magic;
    uint32_t words[18];
    uint32_t past;
} thimble_fault_record;

extern thimble_fault_record thimble_fault;

/* Says whether the record is one, so that a reset does not lose it: THIMBLE_FAULT_MAGIC, or 0. */
void thimble_fault_mark(uint32_t magic);

/* Empties the record without reading it: after power-on, RAM with ECC holds no valid words. */
void thimble_fault_forget(void);

/* What is wrong with the memory beside the chip (protocol.md), besides 0. */
#define THIMBLE_BESIDE_SILENT (-40)  /* it does not answer */
#define THIMBLE_BESIDE_UNKNOWN (-41) /* it is none that the firmware knows */
#define THIMBLE_BESIDE_DAMAGED (-42) /* it does not hold what was built */

/* The memory beside the chip: what is wrong with it, and its JEDEC identity (0: not read). */
typedef struct {
    int32_t status;
    uint32_t identity;
} thimble_beside_state;

extern thimble_beside_state thimble_beside;

/* Takes note of what thimble_external_init said; if it is readable, compares its bytes with those built. */
void thimble_beside_check(int32_t status, uint32_t identity);

/* Answers requests for ever. */
void thimble_serve(void) __attribute__((noreturn));

/* Sends the recorded fault as the answer to the request that is being served. */
void thimble_serve_fault(void);

void thimble_memory_paint(void);
void thimble_arena_paint(const thimble_model *model);
uint32_t thimble_stack_used_bytes(void);
uint32_t thimble_arena_used_bytes(void);

/* Gives the model's state, if it has one, its initial value. */
void thimble_state_reset(const thimble_model *model);

/* Runs the model once and leaves the count, less that of the hooks, in `total`. */
int32_t thimble_measured_run(uint64_t *total);

#ifdef THIMBLE_KERNELS
/* Runs one kernel and leaves its count in `count`. */
int32_t thimble_timed_kernel(uint32_t index, uint64_t *count);
#endif

void thimble_system_reset(void) __attribute__((noreturn));

/* Ends the emulator with exit code 0. */
void thimble_emulator_exit(void) __attribute__((noreturn));

void thimble_reset(void) __attribute__((noreturn));
void thimble_fault_entry(void);

#endif
