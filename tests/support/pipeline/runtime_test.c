/*
 * A runtime for the tests of pipeline.c: a stage adds its number plus 1 to every byte of its first input.
 * STICKS: how many there are. LOSES: "stick:frames", the stick fails for good after so many frames.
 * HANGS, FAILS: the stage, which hangs, or fails wherever it runs, in its second frame.
 */
#include "runtime.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct runtime {
    const struct pipeline_model *model;
    const struct pipeline_stage *stage;
    int device, number;
    long frames;
};

static atomic_int most_at_once, at_once;

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtol(text, NULL, 10);
}

static long frames_of_stick(int device)
{
    const char *text = getenv("LOSES");
    if (device < 0 || text == NULL || strtol(text, NULL, 10) != device) {
        return -1;
    }
    return strtol(strchr(text, ':') + 1, NULL, 10);
}

uint32_t runtime_sticks(void)
{
    return (uint32_t)setting("STICKS", 0);
}

struct runtime *runtime_open(const struct pipeline_model *model,
                             const struct pipeline_stage *stage,
                             const char *folder,
                             int device,
                             char *why,
                             size_t why_size)
{
    struct runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime == NULL || strcmp(folder, "absent") == 0) {
        (void)snprintf(why, why_size, "no folder %s", folder);
        free(runtime);
        return NULL;
    }
    runtime->model = model;
    runtime->stage = stage;
    runtime->device = device;
    runtime->number = (int)(stage - model->stages);
    return runtime;
}

bool runtime_invoke(struct runtime *runtime, void *const *tensors, char *why, size_t why_size)
{
    const struct pipeline_stage *stage = runtime->stage;
    const unsigned char *from = tensors[stage->inputs[0]];
    const size_t from_bytes = runtime->model->tensors[stage->inputs[0]].bytes;
    const int now = atomic_fetch_add(&at_once, 1) + 1;
    if (now > atomic_load(&most_at_once)) {
        atomic_store(&most_at_once, now);
    }
    (void)usleep(500);
    runtime->frames++;
    bool good = frames_of_stick(runtime->device) < 0 || runtime->frames <= frames_of_stick(runtime->device);
    if (runtime->frames == 2 && setting("HANGS", -1) == runtime->number) {
        (void)sleep(1000);
    }
    if (runtime->frames >= 2 && setting("FAILS", -1) == runtime->number) {
        good = false;
    }
    if (!good) {
        (void)snprintf(why, why_size, "the device is gone");
    }
    for (uint32_t k = 0; good && k < stage->output_count; k++) {
        unsigned char *to = tensors[stage->outputs[k]];
        for (size_t at = 0; at < runtime->model->tensors[stage->outputs[k]].bytes; at++) {
            to[at] = (unsigned char)(from[at % from_bytes] + runtime->number + 1);
        }
    }
    (void)atomic_fetch_sub(&at_once, 1);
    return good;
}

void runtime_close(struct runtime *runtime)
{
    (void)fprintf(stderr, "closed, at most %d at once\n", atomic_load(&most_at_once));
    free(runtime);
}
