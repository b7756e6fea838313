/*
 * LiteRT's C API on the processor, one thread a stage. No sticks: it takes no delegate of libedgetpu.
 * Its kernels are LiteRT's quick ones, as those of `thimble edgetpu run --fast`: libLiteRt.so 2.3 has
 * no reference kernels.
 */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "litert/c/litert_compiled_model.h"
#include "litert/c/litert_environment.h"
#include "litert/c/litert_model.h"
#include "litert/c/litert_options.h"
#include "litert/c/litert_tensor_buffer.h"

#define SIGNATURE 0

/* One end of the stage: the buffer, and the pipeline's tensor that goes into it or comes out. */
struct end {
    LiteRtTensorBuffer buffer;
    uint32_t tensor;
};

struct runtime {
    LiteRtEnvironment environment;
    LiteRtModel model;
    LiteRtOptions options;
    LiteRtCompiledModel compiled;
    const struct pipeline_model *tensors;
    struct end *inputs, *outputs; /* in the signature's order */
    LiteRtTensorBuffer *buffers;  /* of all inputs, then of all outputs */
    uint32_t input_count, output_count;
};

uint32_t runtime_sticks(void)
{
    return 0;
}

static bool fail(char *why, size_t size, const char *what, const char *name)
{
    (void)snprintf(why, size, "%s%s%s", what, *name == '\0' ? "" : ": ", name);
    return false;
}

/* Finds the pipeline's tensor of an end by its name, and makes the buffer for it. */
static bool make_end(struct runtime *runtime,
                     LiteRtTensor tensor,
                     const uint32_t *numbers,
                     uint32_t count,
                     struct end *end,
                     char *why,
                     size_t why_size)
{
    LiteRtRankedTensorType type;
    const char *name = "";
    if (LiteRtGetTensorName(tensor, &name) != kLiteRtStatusOk ||
        LiteRtGetRankedTensorType(tensor, &type) != kLiteRtStatusOk) {
        return fail(why, why_size, "a tensor of the file has no name or shape", name);
    }
    for (uint32_t k = 0; k < count; k++) {
        const struct pipeline_tensor *found = &runtime->tensors->tensors[numbers[k]];
        if (strcmp(found->name, name) != 0) {
            continue;
        }
        size_t bytes = 0;
        end->tensor = numbers[k];
        if (LiteRtCreateManagedTensorBuffer(runtime->environment, kLiteRtTensorBufferTypeHostMemory, &type,
                                            found->bytes, &end->buffer) != kLiteRtStatusOk ||
            LiteRtGetTensorBufferPackedSize(end->buffer, &bytes) != kLiteRtStatusOk ||
            bytes != found->bytes) {
            return fail(why, why_size, "the file has another size of tensor", name);
        }
        return true;
    }
    return fail(why, why_size, "the file has a tensor that the pipeline does not have", name);
}

static bool make_ends(struct runtime *runtime, const struct pipeline_stage *stage, char *why, size_t why_size)
{
    LiteRtSignature signature = NULL;
    LiteRtParamIndex inputs = 0, outputs = 0;
    if (LiteRtGetModelSignature(runtime->model, SIGNATURE, &signature) != kLiteRtStatusOk ||
        LiteRtGetNumSignatureInputs(signature, &inputs) != kLiteRtStatusOk ||
        LiteRtGetNumSignatureOutputs(signature, &outputs) != kLiteRtStatusOk ||
        inputs != stage->input_count || outputs != stage->output_count) {
        return fail(why, why_size, "the file has other inputs or outputs than the stage", stage->file);
    }
    runtime->inputs = calloc(inputs + 1U, sizeof *runtime->inputs);
    runtime->outputs = calloc(outputs + 1U, sizeof *runtime->outputs);
    runtime->buffers = calloc(inputs + outputs + 1U, sizeof *runtime->buffers);
    if (runtime->inputs == NULL || runtime->outputs == NULL || runtime->buffers == NULL) {
        return fail(why, why_size, "out of memory", "");
    }
    LiteRtTensor tensor = NULL;
    for (; runtime->input_count < inputs; runtime->input_count++) {
        const uint32_t k = runtime->input_count;
        if (LiteRtGetSignatureInputTensorByIndex(signature, k, &tensor) != kLiteRtStatusOk ||
            !make_end(runtime, tensor, stage->inputs, stage->input_count, &runtime->inputs[k], why,
                      why_size)) {
            return false;
        }
        runtime->buffers[k] = runtime->inputs[k].buffer;
    }
    for (; runtime->output_count < outputs; runtime->output_count++) {
        const uint32_t k = runtime->output_count;
        if (LiteRtGetSignatureOutputTensorByIndex(signature, k, &tensor) != kLiteRtStatusOk ||
            !make_end(runtime, tensor, stage->outputs, stage->output_count, &runtime->outputs[k], why,
                      why_size)) {
            return false;
        }
        runtime->buffers[inputs + k] = runtime->outputs[k].buffer;
    }
    return true;
}

static bool load(struct runtime *runtime, const char *path, char *why, size_t why_size)
{
    if (LiteRtCreateEnvironment(0, NULL, &runtime->environment) != kLiteRtStatusOk) {
        return fail(why, why_size, "LiteRT does not start", "");
    }
    if (LiteRtCreateModelFromFile(runtime->environment, path, &runtime->model) != kLiteRtStatusOk) {
        return fail(why, why_size, "cannot be read as a TensorFlow Lite model", path);
    }
    if (LiteRtCreateOptions(&runtime->options) != kLiteRtStatusOk ||
        LiteRtSetOptionsHardwareAccelerators(runtime->options, kLiteRtHwAcceleratorCpu) != kLiteRtStatusOk) {
        return fail(why, why_size, "LiteRT takes no options", "");
    }
    if (LiteRtCreateCompiledModel(runtime->environment, runtime->model, runtime->options,
                                  &runtime->compiled) != kLiteRtStatusOk) {
        return fail(why, why_size, "LiteRT refuses the file", path);
    }
    return true;
}

struct runtime *runtime_open(const struct pipeline_model *model,
                             const struct pipeline_stage *stage,
                             const char *folder,
                             int device,
                             char *why,
                             size_t why_size)
{
    const size_t length = strlen(folder) + strlen(stage->file) + 2U;
    struct runtime *runtime = calloc(1, sizeof *runtime);
    char *path = malloc(length);
    if (runtime == NULL || path == NULL || device >= 0) {
        free(runtime);
        free(path);
        (void)fail(why, why_size, device >= 0 ? "LiteRT's C API knows no sticks" : "out of memory", "");
        return NULL;
    }
    (void)snprintf(path, length, "%s/%s", folder, stage->file);
    runtime->tensors = model;
    const bool good = load(runtime, path, why, why_size) && make_ends(runtime, stage, why, why_size);
    free(path);
    if (!good) {
        runtime_close(runtime);
        return NULL;
    }
    return runtime;
}

static bool copy(const struct runtime *runtime, const struct end *end, void *data, bool in)
{
    const LiteRtTensorBufferLockMode mode =
        in ? kLiteRtTensorBufferLockModeWrite : kLiteRtTensorBufferLockModeRead;
    const size_t bytes = runtime->tensors->tensors[end->tensor].bytes;
    void *place = NULL;
    if (LiteRtLockTensorBuffer(end->buffer, &place, mode) != kLiteRtStatusOk) {
        return false;
    }
    (void)memcpy(in ? place : data, in ? data : place, bytes);
    return LiteRtUnlockTensorBuffer(end->buffer) == kLiteRtStatusOk;
}

bool runtime_invoke(struct runtime *runtime, void *const *tensors, char *why, size_t why_size)
{
    for (uint32_t k = 0; k < runtime->input_count; k++) {
        if (!copy(runtime, &runtime->inputs[k], tensors[runtime->inputs[k].tensor], true)) {
            return fail(why, why_size, "an input cannot be copied", "");
        }
    }
    if (LiteRtRunCompiledModel(runtime->compiled, SIGNATURE, runtime->input_count, runtime->buffers,
                               runtime->output_count,
                               runtime->buffers + runtime->input_count) != kLiteRtStatusOk) {
        return fail(why, why_size, "LiteRT returned an error", "");
    }
    for (uint32_t k = 0; k < runtime->output_count; k++) {
        if (!copy(runtime, &runtime->outputs[k], tensors[runtime->outputs[k].tensor], false)) {
            return fail(why, why_size, "an output cannot be copied", "");
        }
    }
    return true;
}

void runtime_close(struct runtime *runtime)
{
    for (uint32_t k = 0; k < runtime->input_count; k++) {
        LiteRtDestroyTensorBuffer(runtime->inputs[k].buffer);
    }
    for (uint32_t k = 0; k < runtime->output_count; k++) {
        LiteRtDestroyTensorBuffer(runtime->outputs[k].buffer);
    }
    if (runtime->compiled != NULL) {
        LiteRtDestroyCompiledModel(runtime->compiled);
    }
    if (runtime->options != NULL) {
        LiteRtDestroyOptions(runtime->options);
    }
    if (runtime->model != NULL) {
        LiteRtDestroyModel(runtime->model);
    }
    if (runtime->environment != NULL) {
        LiteRtDestroyEnvironment(runtime->environment);
    }
    free(runtime->inputs);
    free(runtime->outputs);
    free(runtime->buffers);
    free(runtime);
}
