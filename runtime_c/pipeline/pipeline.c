#include "pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime.h"

#define WHY_SIZE 400
#define ALIGNMENT 64
#define POLL_MS 50
#define FREE (-1)
#define LOST (-2)

struct frame {
    uint64_t number;
    void **tensors;
    unsigned char *bytes;
    struct frame *next;
};

/* Frames between two threads. Bounded by the number of frames that there are, and by `room`. */
struct queue {
    struct frame *first, *last;
    uint32_t count, room;
    bool finished;
};

struct run;

struct stage_thread {
    struct run *run;
    uint32_t number;
    pthread_t thread;
    struct runtime *runtime;
    struct pipeline_times times;
    double busy_since_ms; /* 0: idle */
};

struct run {
    const struct pipeline_options *options;
    const struct pipeline_model *model;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct queue *queues; /* before each stage, and one before the sink */
    struct queue unused;
    struct frame *frames;
    uint32_t frame_count;
    struct stage_thread *stages;
    int *owners; /* of each stick: a stage, or one of the two below */
    uint32_t sticks;
    bool running; /* the sink */
    enum pipeline_status status;
    pthread_t source, sink;
};

static atomic_bool stopping; /* lock-free, so that a signal handler may set it */

void pipeline_stop(void)
{
    atomic_store(&stopping, true);
}

bool pipeline_stopping(void)
{
    return atomic_load(&stopping);
}

const char *pipeline_status_text(enum pipeline_status status)
{
    switch (status) {
    case PIPELINE_OK:
        return "all frames done";
    case PIPELINE_STOPPED:
        return "stopped";
    case PIPELINE_FAILED:
        return "a stage failed";
    case PIPELINE_STALLED:
        return "a stage does not answer";
    case PIPELINE_NO_MEMORY:
        return "out of memory, or of threads";
    }
    return "unknown";
}

static double now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

void pipeline_print(FILE *to, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at >= ' ' && *at <= '~') {
            (void)fputc(*at, to);
        } else {
            (void)fprintf(to, "\\x%02x", (unsigned)(unsigned char)*at);
        }
    }
}

static void tell(const struct run *run, const char *text)
{
    if (run->options->event != NULL) {
        run->options->event(run->options->user, text);
    } else {
        flockfile(stderr); /* stages tell at once */
        pipeline_print(stderr, text);
        (void)fputc('\n', stderr);
        funlockfile(stderr);
    }
}

/* Ends the run for all threads; the first reason counts. The mutex is held. */
static void end(struct run *run, enum pipeline_status status)
{
    if (run->status == PIPELINE_OK) {
        run->status = status;
    }
    pipeline_stop(); /* a source that waits for its next frame looks at it */
    (void)pthread_cond_broadcast(&run->changed);
}

static bool ended(const struct run *run)
{
    return run->status != PIPELINE_OK;
}

/* Takes a frame: waits for one. NULL: there are no more, or the run has ended. */
static struct frame *take(struct run *run, struct queue *queue)
{
    struct frame *frame = NULL;
    (void)pthread_mutex_lock(&run->mutex);
    while (queue->first == NULL && !queue->finished && !ended(run)) {
        (void)pthread_cond_wait(&run->changed, &run->mutex);
    }
    if (queue->first != NULL && !ended(run)) {
        frame = queue->first;
        queue->first = frame->next;
        queue->count--;
        (void)pthread_cond_broadcast(&run->changed);
    }
    (void)pthread_mutex_unlock(&run->mutex);
    return frame;
}

/* Hands a frame on: waits for room. */
static void put(struct run *run, struct queue *queue, struct frame *frame)
{
    (void)pthread_mutex_lock(&run->mutex);
    while (queue->count >= queue->room && !ended(run)) {
        (void)pthread_cond_wait(&run->changed, &run->mutex);
    }
    frame->next = NULL;
    if (queue->first == NULL) {
        queue->first = frame;
    } else {
        queue->last->next = frame;
    }
    queue->last = frame;
    queue->count++;
    (void)pthread_cond_broadcast(&run->changed);
    (void)pthread_mutex_unlock(&run->mutex);
}

static void finish(struct run *run, struct queue *queue)
{
    (void)pthread_mutex_lock(&run->mutex);
    queue->finished = true;
    (void)pthread_cond_broadcast(&run->changed);
    (void)pthread_mutex_unlock(&run->mutex);
}

static const char *device_text(int device, char *text, size_t size)
{
    if (device < 0) {
        (void)snprintf(text, size, "the CPU");
    } else {
        (void)snprintf(text, size, "stick %d", device);
    }
    return text;
}

static void set_owner(struct run *run, int device, int owner)
{
    (void)pthread_mutex_lock(&run->mutex);
    if (device >= 0) {
        run->owners[device] = owner;
    }
    (void)pthread_mutex_unlock(&run->mutex);
}

/* Reserves a stick for a stage. The processor has room for all stages. */
static bool reserve(struct run *run, int device, uint32_t stage, char *why)
{
    if (device == PIPELINE_CPU) {
        return true;
    }
    if (device >= (int)run->sticks) {
        (void)snprintf(why, WHY_SIZE, "there is no stick %d: %u found", device, run->sticks);
        return false;
    }
    (void)pthread_mutex_lock(&run->mutex);
    const int owner = run->owners[device];
    if (owner == FREE) {
        run->owners[device] = (int)stage;
    }
    (void)pthread_mutex_unlock(&run->mutex);
    if (owner == LOST) {
        (void)snprintf(why, WHY_SIZE, "stick %d is lost", device);
    } else if (owner != FREE) {
        (void)snprintf(why, WHY_SIZE, "stick %d runs stage %d", device, owner);
    }
    return owner == FREE;
}

static bool open_on(struct run *run, struct stage_thread *stage, int device, char *why)
{
    const struct pipeline_stage *what = &run->model->stages[stage->number];
    if (!reserve(run, device, stage->number, why)) {
        return false;
    }
    stage->runtime = runtime_open(run->model, what, run->options->folder, device, why, WHY_SIZE);
    if (stage->runtime == NULL) {
        set_owner(run, device, FREE);
        return false;
    }
    stage->times.device = device;
    return true;
}

/* Opens a stage on `device`; PIPELINE_ANY: on the first stick that takes it, at last on the processor. */
static bool open_stage(struct run *run, struct stage_thread *stage, int device, char *why)
{
    if (device != PIPELINE_ANY) {
        return open_on(run, stage, device, why);
    }
    const bool on_stick = !run->model->stages[stage->number].on_host;
    for (int stick = 0; on_stick && stick < (int)run->sticks; stick++) {
        if (open_on(run, stage, stick, why)) {
            return true;
        }
        char text[WHY_SIZE + 80];
        (void)snprintf(text, sizeof text, "stage %u does not open on stick %d: %s", stage->number, stick,
                       why);
        tell(run, text);
    }
    return open_on(run, stage, PIPELINE_CPU, why);
}

static void set_busy(struct run *run, struct stage_thread *stage, double since_ms)
{
    (void)pthread_mutex_lock(&run->mutex);
    stage->busy_since_ms = since_ms;
    (void)pthread_mutex_unlock(&run->mutex);
}

/* A stage failed: its stick counts as lost, and the stage is moved. The frame is still whole. */
static bool move(struct run *run, struct stage_thread *stage, const char *reason)
{
    char text[2 * WHY_SIZE + 120], where[24], why[WHY_SIZE];
    const int before = stage->times.device;
    (void)snprintf(text, sizeof text, "stage %u failed on %s: %s", stage->number,
                   device_text(before, where, sizeof where), reason);
    tell(run, text);
    if (before < 0) {
        return false; /* the processor is not lost: the stage cannot run */
    }
    runtime_close(stage->runtime);
    stage->runtime = NULL;
    set_owner(run, before, LOST);
    set_busy(run, stage, now_ms());
    const bool opened = open_stage(run, stage, PIPELINE_ANY, why);
    if (opened) {
        stage->times.times_moved++;
        (void)snprintf(text, sizeof text, "stage %u goes on on %s", stage->number,
                       device_text(stage->times.device, where, sizeof where));
    } else {
        (void)snprintf(text, sizeof text, "stage %u runs nowhere else: %s", stage->number, why);
    }
    tell(run, text);
    return opened;
}

static void *run_stage(void *given)
{
    struct stage_thread *stage = given;
    struct run *run = stage->run;
    struct queue *from = &run->queues[stage->number], *to = from + 1;
    char why[WHY_SIZE];
    for (;;) {
        struct frame *frame = take(run, from);
        if (frame == NULL) {
            break;
        }
        bool done = false;
        do {
            const double begin = now_ms();
            set_busy(run, stage, begin);
            done = runtime_invoke(stage->runtime, frame->tensors, why, sizeof why);
            stage->times.busy_ms += now_ms() - begin;
        } while (!done && move(run, stage, why));
        set_busy(run, stage, 0);
        if (!done) {
            (void)pthread_mutex_lock(&run->mutex);
            end(run, PIPELINE_FAILED);
            (void)pthread_mutex_unlock(&run->mutex);
            break;
        }
        stage->times.frames++;
        put(run, to, frame);
    }
    finish(run, to);
    return NULL;
}

static void *run_source(void *given)
{
    struct run *run = given;
    const struct pipeline_model *model = run->model;
    void **inputs = calloc(model->input_count, sizeof *inputs);
    uint64_t number = 0;
    int more = inputs == NULL ? -1 : 1;
    while (more == 1 && !pipeline_stopping()) {
        struct frame *frame = take(run, &run->unused);
        if (frame == NULL) {
            break;
        }
        for (uint32_t k = 0; k < model->input_count; k++) {
            inputs[k] = frame->tensors[model->inputs[k]];
        }
        more = run->options->source(run->options->user, inputs);
        if (more != 1) {
            break;
        }
        frame->number = number++;
        put(run, &run->queues[0], frame);
    }
    free(inputs);
    (void)pthread_mutex_lock(&run->mutex);
    if (more < 0 || more > 1) {
        end(run, PIPELINE_STOPPED);
    }
    (void)pthread_mutex_unlock(&run->mutex);
    finish(run, &run->queues[0]);
    return NULL;
}

static void *run_sink(void *given)
{
    struct run *run = given;
    const struct pipeline_model *model = run->model;
    struct queue *from = &run->queues[model->stage_count];
    const void **outputs = calloc(model->output_count, sizeof *outputs);
    struct frame *frame;
    int stopped = outputs == NULL;
    while (!stopped && (frame = take(run, from)) != NULL) {
        for (uint32_t k = 0; k < model->output_count; k++) {
            outputs[k] = frame->tensors[model->outputs[k]];
        }
        stopped = run->options->sink(run->options->user, frame->number, outputs);
        put(run, &run->unused, frame);
    }
    free(outputs);
    (void)pthread_mutex_lock(&run->mutex);
    if (stopped) {
        end(run, PIPELINE_STOPPED);
    }
    run->running = false;
    (void)pthread_cond_broadcast(&run->changed);
    (void)pthread_mutex_unlock(&run->mutex);
    return NULL;
}

/* Waits until the sink has ended. False: a stage has not answered for too long. */
static bool watch(struct run *run)
{
    const double limit_ms = run->options->stall_ms == 0 ? 30e3 : run->options->stall_ms;
    bool answers = true;
    (void)pthread_mutex_lock(&run->mutex);
    while (run->running && answers) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        (void)pthread_cond_timedwait(&run->changed, &run->mutex, &until);
        const double now = now_ms();
        for (uint32_t k = 0; k < run->model->stage_count; k++) {
            const double since = run->stages[k].busy_since_ms;
            if (since > 0 && now - since > limit_ms) {
                char text[120];
                (void)snprintf(text, sizeof text, "stage %u has not answered for %.0f ms", k, now - since);
                tell(run, text);
                end(run, PIPELINE_STALLED);
                answers = false;
            }
        }
    }
    (void)pthread_mutex_unlock(&run->mutex);
    return answers;
}

/* All tensors of a frame lie in one piece of memory. */
static bool make_frames(struct run *run, uint32_t count)
{
    const struct pipeline_model *model = run->model;
    size_t bytes = 0;
    for (uint32_t k = 0; k < model->tensor_count; k++) {
        bytes += (model->tensors[k].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    run->frames = calloc(count, sizeof *run->frames);
    run->unused.room = count;
    run->frame_count = run->frames == NULL ? 0 : count;
    for (uint32_t k = 0; k < run->frame_count; k++) {
        struct frame *frame = &run->frames[k];
        frame->tensors = calloc(model->tensor_count, sizeof *frame->tensors);
        frame->bytes = aligned_alloc(ALIGNMENT, bytes);
        if (frame->tensors == NULL || frame->bytes == NULL) {
            return false;
        }
        unsigned char *place = frame->bytes;
        for (uint32_t tensor = 0; tensor < model->tensor_count; tensor++) {
            frame->tensors[tensor] = place;
            place += (model->tensors[tensor].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        put(run, &run->unused, frame);
    }
    return run->frames != NULL;
}

static bool prepare(struct run *run)
{
    const uint32_t stages = run->model->stage_count;
    const uint32_t room = run->options->queue == 0 ? 1 : run->options->queue;
    run->sticks = runtime_sticks();
    run->owners = calloc(run->sticks + 1U, sizeof *run->owners);
    run->queues = calloc(stages + 1U, sizeof *run->queues);
    run->stages = calloc(stages, sizeof *run->stages);
    if (run->owners == NULL || run->queues == NULL || run->stages == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < run->sticks; k++) {
        run->owners[k] = FREE;
    }
    for (uint32_t k = 0; k <= stages; k++) {
        run->queues[k].room = room;
    }
    for (uint32_t k = 0; k < stages; k++) {
        run->stages[k].run = run;
        run->stages[k].number = k;
        run->stages[k].times.device = PIPELINE_CPU;
    }
    /* In each queue, in each stage, in the source and in the sink. */
    return make_frames(run, (stages + 1U) * room + stages + 2U);
}

static enum pipeline_status open_stages(struct run *run)
{
    char why[WHY_SIZE], text[WHY_SIZE + 80];
    for (uint32_t k = 0; k < run->model->stage_count; k++) {
        const int device = run->options->devices == NULL ? PIPELINE_ANY : run->options->devices[k];
        if (!open_stage(run, &run->stages[k], device, why)) {
            (void)snprintf(text, sizeof text, "stage %u does not open: %s", k, why);
            tell(run, text);
            return PIPELINE_FAILED;
        }
    }
    return PIPELINE_OK;
}

static enum pipeline_status run_threads(struct run *run)
{
    const uint32_t stages = run->model->stage_count;
    uint32_t started = 0;
    run->running = true;
    bool good = pthread_create(&run->sink, NULL, run_sink, run) == 0;
    const bool sink = good;
    while (good && started < stages) {
        struct stage_thread *stage = &run->stages[started];
        good = pthread_create(&stage->thread, NULL, run_stage, stage) == 0;
        started += good ? 1U : 0U;
    }
    const bool source = good && pthread_create(&run->source, NULL, run_source, run) == 0;
    if (!source) {
        (void)pthread_mutex_lock(&run->mutex);
        end(run, PIPELINE_NO_MEMORY);
        run->running = sink;
        (void)pthread_mutex_unlock(&run->mutex);
    }
    if (!watch(run)) {
        return PIPELINE_STALLED;
    }
    if (source) {
        (void)pthread_join(run->source, NULL);
    }
    for (uint32_t k = 0; k < started; k++) {
        (void)pthread_join(run->stages[k].thread, NULL);
    }
    if (sink) {
        (void)pthread_join(run->sink, NULL);
    }
    if (run->status == PIPELINE_OK && pipeline_stopping()) {
        return PIPELINE_STOPPED;
    }
    return run->status;
}

static void release(struct run *run)
{
    for (uint32_t k = 0; run->stages != NULL && k < run->model->stage_count; k++) {
        if (run->stages[k].runtime != NULL) {
            runtime_close(run->stages[k].runtime);
        }
    }
    for (uint32_t k = 0; k < run->frame_count; k++) {
        free(run->frames[k].tensors);
        free(run->frames[k].bytes);
    }
    free(run->frames);
    free(run->stages);
    free(run->queues);
    free(run->owners);
    (void)pthread_cond_destroy(&run->changed);
    (void)pthread_mutex_destroy(&run->mutex);
    free(run);
}

enum pipeline_status pipeline_run(const struct pipeline_options *options, struct pipeline_times *times)
{
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return PIPELINE_NO_MEMORY;
    }
    run->options = options;
    run->model = &pipeline_model;
    (void)pthread_mutex_init(&run->mutex, NULL);
    (void)pthread_cond_init(&run->changed, NULL);
    enum pipeline_status status = prepare(run) ? open_stages(run) : PIPELINE_NO_MEMORY;
    if (status == PIPELINE_OK) {
        status = run_threads(run);
    }
    for (uint32_t k = 0; times != NULL && run->stages != NULL && k < run->model->stage_count; k++) {
        times[k] = run->stages[k].times;
    }
    if (status != PIPELINE_STALLED) { /* its thread still uses all of it */
        release(run);
        atomic_store(&stopping, false);
    }
    return status;
}
