/* A pipeline of stages: a thread for each, bounded queues between them, results in order. */
#ifndef THIMBLE_PIPELINE_H
#define THIMBLE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A tensor of the model's ends or between stages. Every frame has room for all of them. */
struct pipeline_tensor {
    const char *name; /**< as in the stages' files */
    const char *type; /**< of its elements, as NumPy writes it: "int8" */
    size_t bytes;
};

struct pipeline_stage {
    const char *file;     /**< for the CPU */
    const char *compiled; /**< for a stick: edgetpu_compiler's output for `file` */
    const uint32_t *inputs, *outputs;
    uint32_t input_count, output_count; /**< numbers of tensors */
    bool on_host;                       /**< planned for the processor, where PIPELINE_ANY puts it */
};

struct pipeline_model {
    const char *name;
    const struct pipeline_tensor *tensors;
    const struct pipeline_stage *stages;
    const uint32_t *inputs, *outputs;
    uint32_t tensor_count, stage_count, input_count, output_count;
};

/** Written to stages.c by Thimble. */
extern const struct pipeline_model pipeline_model;

enum pipeline_status {
    PIPELINE_OK = 0,
    PIPELINE_STOPPED, /**< the source, the sink or pipeline_stop() ended it early */
    PIPELINE_FAILED,  /**< a stage failed everywhere that it was tried */
    PIPELINE_STALLED, /**< a stage has not answered for `stall_ms`; its thread cannot be ended: exit */
    PIPELINE_NO_MEMORY
};

#define PIPELINE_CPU (-1) /**< a device: this computer's processor */
#define PIPELINE_ANY (-2) /**< a device: a stick if there is one for the stage, else the processor */

struct pipeline_options {
    const char *folder; /**< of the stages' files */
    const int *devices; /**< of each stage: the number of a stick, PIPELINE_CPU or PIPELINE_ANY; NULL: any */
    uint32_t queue;     /**< frames that wait before a stage; 0: one */
    uint32_t stall_ms;  /**< 0: 30 s */
    /** Called from any thread with a line of text: a lost stick, and where its stage runs now. NULL: stderr.
     */
    void (*event)(void *user, const char *text);
    /** Fills the model's inputs, in `pipeline_model.inputs`' order. 1: a frame; 0: no more; else: stop. */
    int (*source)(void *user, void *const *inputs);
    /** Takes the outputs, in `pipeline_model.outputs`' order, frame by frame. 0: go on; else: stop. */
    int (*sink)(void *user, uint64_t frame, const void *const *outputs);
    void *user;
};

struct pipeline_times {
    uint64_t frames;
    double busy_ms;       /**< of all frames, transfers to and from the device included */
    int device;           /**< where the stage ran at the end */
    uint32_t times_moved; /**< to another device, because one was lost */
};

/**
 * Runs frames until the source has no more. `times` has a place for each stage, or is NULL.
 * The source runs in a thread of its own, the sink in another.
 */
enum pipeline_status pipeline_run(const struct pipeline_options *options, struct pipeline_times *times);

/**
 * Ends the run after the frames that are under way; before a run, that run at its start. May be called from a
 * signal handler.
 */
void pipeline_stop(void);

/**
 * Whether the run is to end early: pipeline_stop() was called, or a stage, the source or the sink failed. A
 * source or sink that waits for something asks this several times a second, and returns: pipeline_run() waits
 * for both.
 */
bool pipeline_stopping(void);

/** Prints a text that a model's file may hold: what is not printable ASCII as \xNN. */
void pipeline_print(FILE *to, const char *text);

const char *pipeline_status_text(enum pipeline_status status);

#ifdef __cplusplus
}
#endif
#endif
