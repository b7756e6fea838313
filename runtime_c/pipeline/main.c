/* Frames from a file or a pipe through the pipeline; results to a file or a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline.h"

#define POLL_MS 50
#define GRACE_POLLS 10 /* so often an output that takes nothing is waited for once the run is to stop */
#define NEW_FILE_MODE 0666

#ifndef PIPE_BUF
#define PIPE_BUF _POSIX_PIPE_BUF
#endif

struct streams {
    int in, out;
    size_t most_at_once; /* so much never blocks where poll() has said that `out` takes bytes */
    int grace_polls;
    uint64_t frames;
    bool cut;                /* the input ended inside a frame */
    int in_error, out_error; /* errno */
};

/* Waits until `file` can be read or written. False: the run is to stop, and `polls` more brought nothing. */
static bool ready(int file, short what, int *polls)
{
    for (;;) {
        struct pollfd waiting = {file, what, 0};
        const int found = poll(&waiting, 1, POLL_MS);
        if (found > 0 || (found < 0 && errno != EINTR)) {
            return true; /* the call that follows tells what is wrong */
        }
        if (pipeline_stopping() && (*polls)-- <= 0) {
            return false;
        }
    }
}

/* Reads all of `bytes`; fewer at the end of the input, at an error, and where the run is to stop. */
static size_t read_all(struct streams *streams, unsigned char *to, size_t bytes, bool *stopped)
{
    size_t got = 0;
    while (got < bytes) {
        int polls = 0;
        if (!ready(streams->in, POLLIN, &polls)) {
            *stopped = true;
            break;
        }
        const ssize_t more = read(streams->in, to + got, bytes - got);
        if (more < 0 && errno != EINTR && errno != EAGAIN) {
            streams->in_error = errno;
            break;
        }
        if (more == 0) {
            break;
        }
        got += more > 0 ? (size_t)more : 0U;
    }
    return got;
}

static int read_frame(void *user, void *const *inputs)
{
    struct streams *streams = user;
    for (uint32_t k = 0; k < pipeline_model.input_count; k++) {
        const size_t bytes = pipeline_model.tensors[pipeline_model.inputs[k]].bytes;
        bool stopped = false;
        const size_t got = read_all(streams, inputs[k], bytes, &stopped);
        if (stopped) {
            return 0; /* the frames that are whole are still computed */
        }
        if (got != bytes) {
            streams->cut = (got != 0 || k != 0) && streams->in_error == 0;
            return streams->cut || streams->in_error != 0 ? -1 : 0;
        }
    }
    return 1;
}

static int write_frame(void *user, uint64_t frame, const void *const *outputs)
{
    struct streams *streams = user;
    for (uint32_t k = 0; k < pipeline_model.output_count; k++) {
        const unsigned char *from = outputs[k];
        size_t left = pipeline_model.tensors[pipeline_model.outputs[k]].bytes;
        while (left > 0) {
            if (!ready(streams->out, POLLOUT, &streams->grace_polls)) {
                return -1;
            }
            const ssize_t sent =
                write(streams->out, from, left < streams->most_at_once ? left : streams->most_at_once);
            if (sent < 0 && errno != EINTR && errno != EAGAIN) {
                streams->out_error = errno;
                return -1;
            }
            from += sent > 0 ? sent : 0;
            left -= sent > 0 ? (size_t)sent : 0U;
        }
    }
    streams->frames = frame + 1;
    return 0;
}

static void on_signal(int number)
{
    (void)number;
    pipeline_stop();
}

static void usage(FILE *to, const char *program)
{
    (void)fprintf(
        to,
        "usage: %s [--folder DIR] [--devices LIST] [--queue FRAMES] [--stall-ms MS] [INPUT [OUTPUT]]\n"
        "INPUT, OUTPUT: files, or - for standard input and output (the default): frames without a\n"
        "header, each with all inputs (outputs) one after another:\n",
        program);
    for (uint32_t k = 0; k < pipeline_model.input_count + pipeline_model.output_count; k++) {
        const bool in = k < pipeline_model.input_count;
        const uint32_t number =
            in ? pipeline_model.inputs[k] : pipeline_model.outputs[k - pipeline_model.input_count];
        const struct pipeline_tensor *tensor = &pipeline_model.tensors[number];
        (void)fprintf(to, "  %s ", in ? "input" : "output");
        pipeline_print(to, tensor->name);
        (void)fprintf(to, ": %s, %zu bytes\n", tensor->type, tensor->bytes);
    }
    (void)fprintf(
        to,
        "LIST: the device of each of the %u stages, with commas: the number of a stick, cpu, or any\n"
        "(a stick if there is one, else the CPU; the default).\n",
        pipeline_model.stage_count);
}

static bool read_devices(char *list, int *devices)
{
    uint32_t count = 0;
    for (char *part = strtok(list, ","); part != NULL; part = strtok(NULL, ","), count++) {
        char *rest = part;
        const long number = strtol(part, &rest, 10);
        if (count == pipeline_model.stage_count) {
            return false;
        }
        if (strcmp(part, "cpu") == 0) {
            devices[count] = PIPELINE_CPU;
        } else if (strcmp(part, "any") == 0) {
            devices[count] = PIPELINE_ANY;
        } else if (rest != part && *rest == '\0' && number >= 0 && number < 256) {
            devices[count] = (int)number;
        } else {
            return false;
        }
    }
    return count == pipeline_model.stage_count;
}

static bool read_count(const char *text, uint32_t *count)
{
    char *rest = NULL;
    const unsigned long value = strtoul(text, &rest, 10);
    *count = (uint32_t)value;
    return rest != text && *rest == '\0' && value >= 1 && value <= 1000000;
}

static int run(int argc, char **argv, int *devices, struct pipeline_times *times)
{
    struct streams streams = {.in = STDIN_FILENO, .out = STDOUT_FILENO, .grace_polls = GRACE_POLLS};
    struct pipeline_options options = {
        .folder = PIPELINE_FOLDER, .source = read_frame, .sink = write_frame, .user = &streams};
    const char *files[2] = {"-", "-"};
    int given = 0;
    for (int k = 1; k < argc; k++) {
        const char *name = argv[k];
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
            usage(stdout, argv[0]);
            return 0;
        }
        bool good = true;
        if (strncmp(name, "--", 2) == 0 && k + 1 < argc) {
            char *value = argv[++k];
            if (strcmp(name, "--folder") == 0) {
                options.folder = value;
            } else if (strcmp(name, "--devices") == 0) {
                options.devices = devices;
                good = read_devices(value, devices);
            } else if (strcmp(name, "--queue") == 0) {
                good = read_count(value, &options.queue);
            } else if (strcmp(name, "--stall-ms") == 0) {
                good = read_count(value, &options.stall_ms);
            } else {
                good = false;
            }
        } else if (given < 2 && strncmp(name, "--", 2) != 0) {
            files[given++] = name;
        } else {
            good = false;
        }
        if (!good) {
            (void)fprintf(stderr, "%s: what is %s?\n", argv[0], name);
            usage(stderr, argv[0]);
            return 2;
        }
    }
    for (int k = 0; k < given; k++) {
        if (strcmp(files[k], "-") == 0) {
            continue;
        }
        const int file =
            k == 0 ? open(files[k], O_RDONLY) : open(files[k], O_WRONLY | O_CREAT | O_TRUNC, NEW_FILE_MODE);
        if (file < 0) {
            perror(files[k]);
            return 2;
        }
        *(k == 0 ? &streams.in : &streams.out) = file;
    }
    struct stat kind;
    const bool plain = fstat(streams.out, &kind) == 0 && S_ISREG(kind.st_mode);
    streams.most_at_once = plain ? SSIZE_MAX : PIPE_BUF;
    struct sigaction action;
    (void)memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND; /* a second one ends the program where a stage hangs */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    const enum pipeline_status status = pipeline_run(&options, times);
    for (uint32_t k = 0; k < pipeline_model.stage_count; k++) {
        const double frames = times[k].frames == 0 ? 1.0 : (double)times[k].frames;
        char where[24] = "the CPU";
        if (times[k].device >= 0) {
            (void)snprintf(where, sizeof where, "stick %d", times[k].device);
        }
        (void)fprintf(stderr, "stage %u on %s: %.3f ms a frame\n", k, where, times[k].busy_ms / frames);
    }
    if (streams.cut) {
        (void)fprintf(stderr, "%s ends inside a frame\n", files[0]);
    }
    if (streams.in_error != 0) {
        (void)fprintf(stderr, "%s: %s\n", files[0], strerror(streams.in_error));
    }
    if (streams.out_error != 0) {
        (void)fprintf(stderr, "%s: %s\n", files[1], strerror(streams.out_error));
    }
    (void)fprintf(stderr, "%llu frames, %s\n", (unsigned long long)streams.frames,
                  pipeline_status_text(status));
    if (status == PIPELINE_STALLED) {
        _Exit(3);
    }
    const bool written = close(streams.out) == 0;
    return status == PIPELINE_OK ? (written ? 0 : 1) : 3;
}

int main(int argc, char **argv)
{
    int *devices = calloc(pipeline_model.stage_count, sizeof *devices);
    struct pipeline_times *times = calloc(pipeline_model.stage_count, sizeof *times);
    int code = 1;
    if (devices != NULL && times != NULL) {
        code = run(argc, argv, devices, times);
    } else {
        (void)fprintf(stderr, "out of memory\n");
    }
    free(devices);
    free(times);
    return code;
}
