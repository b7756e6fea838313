/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiled model says of itself, in one form for all models: `<name>_info` in `<name>_info.c`. Code
 * that takes a `const struct thimble_info *` can run any model.
 */
#ifndef THIMBLE_INFO_H
#define THIMBLE_INFO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Type of an element. */
enum thimble_type {
    THIMBLE_TYPE_INT8 = 1,
    THIMBLE_TYPE_UINT8 = 2,
    THIMBLE_TYPE_INT16 = 3,
    THIMBLE_TYPE_INT32 = 4,
    THIMBLE_TYPE_INT64 = 5,
    THIMBLE_TYPE_FLOAT32 = 6,
    THIMBLE_TYPE_BOOL = 7,
    THIMBLE_TYPE_UINT32 = 8,
    THIMBLE_TYPE_UINT64 = 9
};

/** An input or output, as the accessors of `<name>.h` give it. The layout is row-major; images are NHWC. */
struct thimble_tensor {
    const char *name; /**< in the model file, UTF-8 */
    enum thimble_type type;
    uint32_t elements;
    uint32_t bytes;
    uint32_t rank;
    const uint32_t *shape; /**< `rank` sizes */
    float scale;           /**< real = scale * (stored - zero_point); 0: not quantised */
    int32_t zero_point;
    uint32_t rows;                 /**< of an input that arrives by rows: it lies nowhere; else 0 */
    uint32_t part;                 /**< of the arena, from 0; 0 where it is in one piece */
    uint32_t offset;               /**< bytes from the start of that part */
    const void *(*constant)(void); /**< where an output lies that is a constant; NULL: in the arena */
    uint32_t label_count;
    const char *const
        *labels; /**< names of the classes, along the last axis, UTF-8; NULL where there are none */
};

/** A part of an arena that is spread over memory banks. */
struct thimble_part {
    const char *name; /**< the member of `<name>_banks` */
    uint32_t bytes;
};

/** An operator, in the order of the numbers that `run` returns where one fails. */
struct thimble_operator {
    const char *kind;
    const char *name; /**< in the model file, UTF-8; NULL without <NAME>_OPERATOR_NAMES */
};

/** A model. */
struct thimble_info {
    const char *name;         /**< prefix of its functions */
    const char *version;      /**< of Thimble */
    const char *core;         /**< for which the code was generated */
    uint8_t model_sha256[32]; /**< of the model file; zeros: it came from no file */
    uint32_t arena_bytes;
    uint32_t arena_alignment;
    uint32_t part_count; /**< 0: the arena is in one piece */
    const struct thimble_part *parts;
    uint32_t weight_bytes;
    uint64_t macs; /**< products of one run */
    uint32_t input_count;
    const struct thimble_tensor *inputs;
    uint32_t output_count;
    const struct thimble_tensor *outputs;
    uint32_t operator_count;
    const struct thimble_operator *operators;
    int32_t (*run)(void *arena); /**< `<name>_run`; with parts, of the struct of pointers to them */
    int32_t (*push_begin)(
        void *arena); /**< `<name>_push_begin`, and `run` NULL, for an input that arrives by rows */
    int32_t (*push_rows)(void *arena, const void *rows, uint32_t count); /**< `<name>_push_rows` */
    void (*reset)(void *arena);              /**< `<name>_reset`; NULL: the model keeps no state */
    const char *(*error_name)(int32_t code); /**< `<name>_error_name` */
};

/** The byte of the arena (with parts: of the struct of pointers to them) at which a tensor begins. */
static inline uint8_t *
thimble_place(const struct thimble_info *info, const struct thimble_tensor *tensor, void *arena)
{
    uint8_t *const part =
        (info->part_count == 0u) ? (uint8_t *)arena : ((uint8_t *const *)arena)[tensor->part];

    return &part[tensor->offset];
}

/** Input `index`, from 0: write it before each run. NULL where it arrives by rows. */
static inline void *thimble_input(const struct thimble_info *info, uint32_t index, void *arena)
{
    const struct thimble_tensor *const tensor = &info->inputs[index];

    return (tensor->rows != 0u) ? NULL : thimble_place(info, tensor, arena);
}

/** Output `index`, from 0, after a run. */
static inline const void *thimble_output(const struct thimble_info *info, uint32_t index, void *arena)
{
    const struct thimble_tensor *const tensor = &info->outputs[index];

    return (tensor->constant != NULL) ? tensor->constant() : thimble_place(info, tensor, arena);
}

#ifdef __cplusplus
}
#endif

#endif
