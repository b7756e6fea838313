/* SPDX-License-Identifier: Apache-2.0 */
/* The model that the firmware carries: tables that the build generates. */
#ifndef THIMBLE_MODEL_H
#define THIMBLE_MODEL_H

#include "thimble_counter.h"

#include <stdint.h>

/* `type` is the protocol's code of the element type (docs/protocol.md). `data` is NULL for an output
 * that is a constant of the model; `constant` then tells where it lies. */
typedef struct {
    const char *name;
    uint8_t *data;
    const void *(*constant)(const uint8_t *arena);
    uint32_t size_bytes;
    uint8_t type;
} thimble_tensor;

/* The part of an arena that lies in one memory bank. */
typedef struct {
    uint8_t *start;
    uint32_t size_bytes;
} thimble_part;

/* `arena` is its first part, `arena_bytes` the size of all. */
typedef struct {
    const char *name;
    const char *board;
    uint8_t build_id[16];
    uint16_t input_count;
    uint16_t output_count;
    uint16_t operator_count;
    const thimble_tensor *inputs;
    const thimble_tensor *outputs;
    thimble_count *operator_counts; /* one an operator, NULL when built without counters */
    const uint16_t *operator_calls; /* how often each runs in one inference, NULL where all run once */
    uint8_t *arena;
    uint32_t arena_bytes;
    int32_t (*run)(uint8_t *arena);
    void (*reset)(uint8_t *arena); /* gives the state its initial value; NULL without state */
    const thimble_part *parts;
    uint32_t part_count;
    int32_t (*prepare)(void); /* gives it the weights that lie outside of its code; NULL where none do */
} thimble_model;

/* All that share the arena, and the one that requests are about: HELLO chooses it, the first at reset. */
extern const thimble_model thimble_models[];
extern const uint32_t thimble_model_count;
extern uint32_t thimble_model_index;

#define thimble_the_model (&thimble_models[thimble_model_index])

#ifdef THIMBLE_KERNELS
/* Kernels that TIME measures one by one; the model's own `run` is then empty. */
extern int32_t (*const thimble_kernels[])(uint8_t *arena);
extern const uint32_t thimble_kernel_count;
#endif

#endif
