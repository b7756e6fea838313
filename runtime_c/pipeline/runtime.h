/* What runs a stage: one file for each runtime (runtime_tflite.c, runtime_litert.c). */
#ifndef THIMBLE_PIPELINE_RUNTIME_H
#define THIMBLE_PIPELINE_RUNTIME_H

#include "pipeline.h"

struct runtime;

/** The sticks of this computer. */
uint32_t runtime_sticks(void);

/**
 * Opens a stage on a stick, or on the processor (PIPELINE_CPU). Returns NULL with the reason in `why`
 * where that cannot be: no such file or stick, other tensors than the pipeline's.
 */
struct runtime *runtime_open(const struct pipeline_model *model,
                             const struct pipeline_stage *stage,
                             const char *folder,
                             int device,
                             char *why,
                             size_t why_size);

/** Runs the stage on the tensors of a frame. Returns false with the reason in `why`. */
bool runtime_invoke(struct runtime *runtime, void *const *tensors, char *why, size_t why_size);

void runtime_close(struct runtime *runtime);

#endif
