/* SPDX-License-Identifier: Apache-2.0 */
/* Sticks fresh from power-on, at the folders of the arguments, as libedgetpu shows them: those without
 * firmware come first, and opening one gives it its firmware (beagle_usb_driver_provider.cc:209-231 and
 * edgetpu_manager_direct.cc:446-451 at e35aed1). Prints the stick of each stage. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edgetpu_c.h"
#include "tensorflow/lite/c/c_api.h"

static int count;
static char **paths;
static const char *opened;

static int has_firmware(const char *path)
{
    char name[4096], vendor[5] = "";
    (void)snprintf(name, sizeof name, "%s/idVendor", path);
    FILE *file = fopen(name, "r");
    if (file == NULL || fgets(vendor, sizeof vendor, file) == NULL) {
        exit(4);
    }
    (void)fclose(file);
    return strcmp(vendor, "18d1") == 0;
}

struct edgetpu_device *edgetpu_list_devices(size_t *number)
{
    struct edgetpu_device *devices = calloc((size_t)count + 1U, sizeof *devices);
    *number = 0;
    for (int firmware = 0; firmware <= 1; firmware++) {
        for (int k = 0; k < count; k++) {
            if (has_firmware(paths[k]) == firmware) {
                devices[*number].type = EDGETPU_APEX_USB;
                devices[(*number)++].path = paths[k];
            }
        }
    }
    return devices;
}

void edgetpu_free_devices(struct edgetpu_device *devices)
{
    free(devices);
}

TfLiteDelegate *edgetpu_create_delegate(enum edgetpu_device_type type,
                                        const char *path,
                                        const struct edgetpu_option *options,
                                        size_t option_count)
{
    char name[4096];
    (void)type;
    (void)options;
    (void)option_count;
    (void)snprintf(name, sizeof name, "%s/idVendor", path);
    FILE *file = fopen(name, "w");
    if (file == NULL) {
        return NULL;
    }
    (void)fputs("18d1\n", file);
    (void)fclose(file);
    opened = path;
    return (TfLiteDelegate *)malloc(1);
}

void edgetpu_free_delegate(TfLiteDelegate *delegate)
{
    free(delegate);
}

/* An interpreter without tensors, which the stages here have none of. */
#define MADE(type) ((type *)malloc(1))

TfLiteModel *TfLiteModelCreateFromFile(const char *path)
{
    (void)path;
    return MADE(TfLiteModel);
}

void TfLiteModelDelete(TfLiteModel *model)
{
    free(model);
}

TfLiteInterpreterOptions *TfLiteInterpreterOptionsCreate(void)
{
    return MADE(TfLiteInterpreterOptions);
}

void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions *options)
{
    free(options);
}

void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions *options, int32_t threads)
{
    (void)options;
    (void)threads;
}

void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions *options, TfLiteDelegate *delegate)
{
    (void)options;
    (void)delegate;
}

TfLiteInterpreter *TfLiteInterpreterCreate(const TfLiteModel *model, const TfLiteInterpreterOptions *options)
{
    (void)model;
    (void)options;
    return MADE(TfLiteInterpreter);
}

void TfLiteInterpreterDelete(TfLiteInterpreter *interpreter)
{
    free(interpreter);
}

TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter *interpreter)
{
    (void)interpreter;
    return kTfLiteOk;
}

TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter *interpreter)
{
    (void)interpreter;
    return kTfLiteOk;
}

int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter *interpreter)
{
    (void)interpreter;
    return 0;
}

int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter *interpreter)
{
    (void)interpreter;
    return 0;
}

TfLiteTensor *TfLiteInterpreterGetInputTensor(const TfLiteInterpreter *interpreter, int32_t index)
{
    (void)interpreter;
    (void)index;
    return NULL;
}

const TfLiteTensor *TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter *interpreter, int32_t index)
{
    return TfLiteInterpreterGetInputTensor(interpreter, index);
}

const char *TfLiteTensorName(const TfLiteTensor *tensor)
{
    (void)tensor;
    return "";
}

size_t TfLiteTensorByteSize(const TfLiteTensor *tensor)
{
    (void)tensor;
    return 0;
}

TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor *tensor, const void *from, size_t bytes)
{
    (void)tensor;
    (void)from;
    (void)bytes;
    return kTfLiteOk;
}

TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor *tensor, void *to, size_t bytes)
{
    (void)tensor;
    (void)to;
    (void)bytes;
    return kTfLiteOk;
}

int main(int argument_count, char **arguments)
{
    static const struct pipeline_stage stage = {.file = "a", .compiled = "b"};
    static const struct pipeline_model model;
    struct runtime *stages[16];
    char why[200] = "";
    count = argument_count - 1;
    paths = arguments + 1;
    if (runtime_sticks() != (uint32_t)count) {
        return 2;
    }
    for (int k = 0; k < count; k++) {
        stages[k] = runtime_open(&model, &stage, ".", k, why, sizeof why);
        if (stages[k] == NULL) {
            (void)fprintf(stderr, "%s\n", why);
            return 3;
        }
        (void)printf("%s\n", strrchr(opened, '/') + 1);
    }
    if (runtime_sticks() != (uint32_t)count) { /* of another run, while these are open */
        return 2;
    }
    for (int k = 0; k < count; k++) {
        runtime_close(stages[k]);
    }
    return 0;
}
