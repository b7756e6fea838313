/*
 * TensorFlow Lite's C API, and libedgetpu's for the sticks (THIMBLE_PIPELINE_EDGETPU). libedgetpu and the
 * interpreter must be of the same TensorFlow version.
 */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/lite/c/c_api.h"
#ifdef THIMBLE_PIPELINE_EDGETPU
#include <pthread.h>

#include "edgetpu_c.h"
#endif

struct runtime {
    TfLiteModel *model;
    TfLiteInterpreterOptions *options;
    TfLiteInterpreter *interpreter;
    TfLiteDelegate *delegate;
    const struct pipeline_model *tensors;
    const struct pipeline_stage *stage;
    int32_t *inputs, *outputs; /* of the interpreter, for each of the stage's: edgetpu_compiler may reorder */
};

#ifdef THIMBLE_PIPELINE_EDGETPU
#define WITHOUT_FIRMWARE "1a6e" /* the vendor of a stick until it has its firmware */

/* The sticks as they were listed when all had their firmware. libedgetpu lists those without firmware first,
 * and opening one loads it (beagle_usb_driver_provider.cc:209, edgetpu_manager_direct.cc:446): listed anew
 * for each stage, two stages may get one stick. */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static struct edgetpu_device *sticks;
static size_t stick_count;
static uint32_t open_count; /* stages on sticks: the list stays while there are any */

/* Only Linux tells. A stick that has its firmware may be in use, and opening it would reset it. */
static bool asleep(const struct edgetpu_device *device)
{
    char path[4096], vendor[sizeof WITHOUT_FIRMWARE] = "";
    const int length = snprintf(path, sizeof path, "%s/idVendor", device->path);
    if (device->type != EDGETPU_APEX_USB || length < 0 || (size_t)length >= sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        (void)fgets(vendor, sizeof vendor, file);
        (void)fclose(file);
    }
    return strcmp(vendor, WITHOUT_FIRMWARE) == 0;
}

static void wake_all(void)
{
    size_t count = 0;
    struct edgetpu_device *found = edgetpu_list_devices(&count);
    for (size_t k = 0; k < count; k++) {
        if (asleep(&found[k])) {
            TfLiteDelegate *delegate = edgetpu_create_delegate(found[k].type, found[k].path, NULL, 0);
            if (delegate != NULL) {
                edgetpu_free_delegate(delegate);
            }
        }
    }
    edgetpu_free_devices(found);
}

uint32_t runtime_sticks(void)
{
    (void)pthread_mutex_lock(&listing);
    if (open_count == 0) {
        wake_all();
        edgetpu_free_devices(sticks);
        sticks = edgetpu_list_devices(&stick_count);
    }
    const uint32_t count = (uint32_t)stick_count;
    (void)pthread_mutex_unlock(&listing);
    return count;
}
#else
uint32_t runtime_sticks(void)
{
    return 0;
}
#endif

static bool fail(char *why, size_t size, const char *what, const char *name)
{
    (void)snprintf(why, size, "%s%s%s", what, *name == '\0' ? "" : ": ", name);
    return false;
}

static bool add_stick(struct runtime *runtime, int device, char *why, size_t why_size)
{
#ifdef THIMBLE_PIPELINE_EDGETPU
    (void)pthread_mutex_lock(&listing);
    if ((size_t)device < stick_count) {
        runtime->delegate = edgetpu_create_delegate(sticks[device].type, sticks[device].path, NULL, 0);
        open_count += runtime->delegate != NULL;
    }
    (void)pthread_mutex_unlock(&listing);
    if (runtime->delegate == NULL) {
        return fail(why, why_size, "the stick does not open (in use, or pulled)", "");
    }
    TfLiteInterpreterOptionsAddDelegate(runtime->options, runtime->delegate);
    return true;
#else
    (void)runtime;
    (void)device;
    return fail(why, why_size, "built without libedgetpu (-DTHIMBLE_PIPELINE_EDGETPU=ON)", "");
#endif
}

static const TfLiteTensor *end_of(const struct runtime *runtime, bool output, int32_t place)
{
    return output ? TfLiteInterpreterGetOutputTensor(runtime->interpreter, place)
                  : TfLiteInterpreterGetInputTensor(runtime->interpreter, place);
}

/* Finds the interpreter's place of a tensor by its name, and compares the bytes. */
static bool
find(struct runtime *runtime, bool output, uint32_t number, int32_t *place, char *why, size_t why_size)
{
    const struct pipeline_tensor *tensor = &runtime->tensors->tensors[number];
    const int32_t count = output ? TfLiteInterpreterGetOutputTensorCount(runtime->interpreter)
                                 : TfLiteInterpreterGetInputTensorCount(runtime->interpreter);
    for (*place = 0; *place < count; (*place)++) {
        const TfLiteTensor *found = end_of(runtime, output, *place);
        if (strcmp(TfLiteTensorName(found), tensor->name) == 0) {
            return TfLiteTensorByteSize(found) == tensor->bytes ||
                   fail(why, why_size, "the file has another size of tensor", tensor->name);
        }
    }
    return fail(why, why_size, "the file has no tensor", tensor->name);
}

static bool load(struct runtime *runtime, const char *path, int device, char *why, size_t why_size)
{
    const struct pipeline_stage *stage = runtime->stage;
    runtime->model = TfLiteModelCreateFromFile(path);
    runtime->options = TfLiteInterpreterOptionsCreate();
    runtime->inputs = calloc(stage->input_count + 1U, sizeof *runtime->inputs);
    runtime->outputs = calloc(stage->output_count + 1U, sizeof *runtime->outputs);
    if (runtime->inputs == NULL || runtime->outputs == NULL || runtime->options == NULL) {
        return fail(why, why_size, "out of memory", "");
    }
    if (runtime->model == NULL) {
        return fail(why, why_size, "cannot be read as a TensorFlow Lite model", path);
    }
    TfLiteInterpreterOptionsSetNumThreads(runtime->options, 1);
    if (device >= 0 && !add_stick(runtime, device, why, why_size)) {
        return false;
    }
    runtime->interpreter = TfLiteInterpreterCreate(runtime->model, runtime->options);
    if (runtime->interpreter == NULL || TfLiteInterpreterAllocateTensors(runtime->interpreter) != kTfLiteOk) {
        return fail(why, why_size, "the interpreter refuses the file", path);
    }
    for (uint32_t k = 0; k < stage->input_count; k++) {
        if (!find(runtime, false, stage->inputs[k], &runtime->inputs[k], why, why_size)) {
            return false;
        }
    }
    for (uint32_t k = 0; k < stage->output_count; k++) {
        if (!find(runtime, true, stage->outputs[k], &runtime->outputs[k], why, why_size)) {
            return false;
        }
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
    struct runtime *runtime = calloc(1, sizeof *runtime);
    const char *file = device >= 0 ? stage->compiled : stage->file;
    const size_t length = strlen(folder) + strlen(file) + 2U;
    char *path = malloc(length);
    if (runtime == NULL || path == NULL) {
        free(runtime);
        free(path);
        (void)fail(why, why_size, "out of memory", "");
        return NULL;
    }
    (void)snprintf(path, length, "%s/%s", folder, file);
    runtime->tensors = model;
    runtime->stage = stage;
    const bool good = load(runtime, path, device, why, why_size);
    free(path);
    if (!good) {
        runtime_close(runtime);
        return NULL;
    }
    return runtime;
}

bool runtime_invoke(struct runtime *runtime, void *const *tensors, char *why, size_t why_size)
{
    const struct pipeline_stage *stage = runtime->stage;
    const struct pipeline_tensor *all = runtime->tensors->tensors;
    for (uint32_t k = 0; k < stage->input_count; k++) {
        TfLiteTensor *to = TfLiteInterpreterGetInputTensor(runtime->interpreter, runtime->inputs[k]);
        if (TfLiteTensorCopyFromBuffer(to, tensors[stage->inputs[k]], all[stage->inputs[k]].bytes) !=
            kTfLiteOk) {
            return fail(why, why_size, "an input cannot be copied", all[stage->inputs[k]].name);
        }
    }
    if (TfLiteInterpreterInvoke(runtime->interpreter) != kTfLiteOk) {
        return fail(why, why_size, "the interpreter returned an error", "");
    }
    for (uint32_t k = 0; k < stage->output_count; k++) {
        const TfLiteTensor *from =
            TfLiteInterpreterGetOutputTensor(runtime->interpreter, runtime->outputs[k]);
        if (TfLiteTensorCopyToBuffer(from, tensors[stage->outputs[k]], all[stage->outputs[k]].bytes) !=
            kTfLiteOk) {
            return fail(why, why_size, "an output cannot be copied", all[stage->outputs[k]].name);
        }
    }
    return true;
}

void runtime_close(struct runtime *runtime)
{
    TfLiteInterpreterDelete(runtime->interpreter);
    TfLiteInterpreterOptionsDelete(runtime->options);
    TfLiteModelDelete(runtime->model);
#ifdef THIMBLE_PIPELINE_EDGETPU
    if (runtime->delegate != NULL) {
        edgetpu_free_delegate(runtime->delegate);
        (void)pthread_mutex_lock(&listing);
        open_count--;
        (void)pthread_mutex_unlock(&listing);
    }
#endif
    free(runtime->inputs);
    free(runtime->outputs);
    free(runtime);
}
