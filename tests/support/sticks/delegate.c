/* An external delegate for LiteRT, as libedgetpu is one, with sticks that the environment lists:
 * THIMBLE_STICKS="usb:0 usb:1@5": `@5` goes away after five invocations, `!` crashes when it is
 * opened, `#` when a stage runs on it. Every operator it takes over is run by its own kernel.
 *
 * The interface: tensorflow/lite/python/interpreter.py (class Delegate) calls the two
 * tflite_plugin_ functions, as libedgetpu/tflite/edgetpu_delegate_for_custom_op_tflite_plugin.cc
 * has them. Layouts: tensorflow/lite/core/c/common.h. With HEADERS_OF_2_5 TfLiteRegistration ends
 * where TensorFlow 2.5 ended it, as in Google's libedgetpu 16.0.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 16, MOST_STICKS = 16 };

typedef enum { kOk = 0, kError = 1 } Status;

typedef struct {
    int size;
    int data[];
} IntArray;

typedef struct Context Context;
typedef struct Delegate Delegate;

typedef struct {
    IntArray *inputs;
    IntArray *outputs;
    IntArray *intermediates;
    IntArray *temporaries;
    void *user_data;
    void *builtin_data;
    const void *custom_initial_data;
    int custom_initial_data_size;
    Delegate *delegate;
    bool might_have_side_effect;
} Node;

typedef struct {
    void *(*init)(Context *, const char *, size_t);
    void (*free)(Context *, void *);
    Status (*prepare)(Context *, Node *);
    Status (*invoke)(Context *, Node *);
    const char *(*profiling_string)(const Context *, const Node *);
    int32_t builtin_code;
    const char *custom_name;
    int version;
#ifdef HEADERS_OF_2_5
    uint64_t stale[3]; /* behind the shorter struct lies what the stack held before */
#else
    void *registration_external;
    void *(*async_kernel)(Context *, Node *);
    uint64_t inplace_operator;
#endif
} Registration;

struct Context {
    size_t tensors_size;
    Status (*get_execution_plan)(Context *, IntArray **);
    void *tensors;
    void *impl;
    Status (*resize_tensor)(Context *, void *, IntArray *);
    void (*report_error)(Context *, const char *, ...);
    Status (*add_tensors)(Context *, int, int *);
    Status (*get_node_and_registration)(Context *, int, Node **, Registration **);
    Status (*replace_node_subsets)(Context *, Registration, const IntArray *, Delegate *);
};

struct Delegate {
    void *data;
    Status (*prepare)(Context *, Delegate *);
    Status (*copy_from_buffer_handle)(Context *, Delegate *, int, void *);
    Status (*copy_to_buffer_handle)(Context *, Delegate *, int, void *);
    void (*free_buffer_handle)(Context *, Delegate *, int *);
    int64_t flags;
    void *opaque_delegate_builder;
};

typedef struct {
    Delegate base;
    char device[NAME_BYTES];
    char behaviour;
    long left; /* invocations until it goes away; -1: it stays */
    int first; /* index of the node that counts them */
} Stick;

typedef struct {
    Delegate *delegate;
    IntArray *nodes_to_replace;
    IntArray *input_tensors;
    IntArray *output_tensors;
} Params;

typedef struct {
    Stick *stick;
    Node node;
    Registration own;
    bool counts;
} Kernel;

/* BuiltinOperator codes of kernels that need no scratch tensors: a delegate's node gets none. */
static bool taken_over(const Registration *own)
{
    static const int codes[] = {0 /* ADD */,
                                1 /* AVERAGE_POOL_2D */,
                                4 /* DEPTHWISE_CONV_2D */,
                                9 /* FULLY_CONNECTED */,
                                17 /* MAX_POOL_2D */,
                                22 /* RESHAPE */,
                                25 /* SOFTMAX */};
    for (size_t k = 0; k < sizeof(codes) / sizeof(codes[0]); k++) {
        if (own->builtin_code == codes[k]) {
            return true;
        }
    }
    return false;
}

static IntArray *copy_of(const IntArray *from)
{
    size_t size = sizeof(IntArray) + (size_t)from->size * sizeof(int);
    IntArray *made = malloc(size);
    if (made == NULL) {
        abort();
    }
    return memcpy(made, from, size);
}

static void *kernel_init(Context *context, const char *buffer, size_t length)
{
    (void)length;
    const Params *params = (const Params *)(const void *)buffer;
    Node *node;
    Registration *own;
    Kernel *kernel = calloc(1, sizeof(Kernel));
    int index = params->nodes_to_replace->data[0];
    if (kernel == NULL || context->get_node_and_registration(context, index, &node, &own) != kOk) {
        abort();
    }
    kernel->stick = (Stick *)params->delegate;
    kernel->node = *node;
    kernel->node.temporaries = copy_of(node->temporaries);
    kernel->own = *own;
    kernel->counts = index == kernel->stick->first;
    return kernel;
}

static void kernel_free(Context *context, void *data)
{
    (void)context;
    Kernel *kernel = data;
    free(kernel->node.temporaries);
    free(kernel);
}

static Status kernel_prepare(Context *context, Node *node)
{
    Kernel *kernel = node->user_data;
    return kernel->own.prepare(context, &kernel->node);
}

static Status kernel_invoke(Context *context, Node *node)
{
    Kernel *kernel = node->user_data;
    Stick *stick = kernel->stick;
    if (stick->behaviour == '#') {
        *(volatile int *)8 = 0;
    }
    if (kernel->counts && stick->left == 0) {
        context->report_error(context, "Failed to execute request. %s is gone.", stick->device);
        return kError;
    }
    if (kernel->counts && stick->left > 0) {
        stick->left--;
    }
    return kernel->own.invoke(context, &kernel->node);
}

static Status delegate_prepare(Context *context, Delegate *delegate)
{
    Stick *stick = (Stick *)delegate;
    const Registration registration = {
        .init = kernel_init,
        .free = kernel_free,
        .prepare = kernel_prepare,
        .invoke = kernel_invoke,
        .custom_name = "StickOfTheTests",
        .version = 1,
#ifdef HEADERS_OF_2_5
        .stale = {16, 16, 16},
#endif
    };
    IntArray *plan;
    if (context->get_execution_plan(context, &plan) != kOk) {
        return kError;
    }
    plan = copy_of(plan); /* the next call of the context may move it */
    IntArray *one = copy_of(plan);
    one->size = 1;
    stick->first = -1;
    Status status = kOk;
    for (int k = 0; k < plan->size && status == kOk; k++) {
        Node *node;
        Registration *own;
        one->data[0] = plan->data[k];
        status = context->get_node_and_registration(context, plan->data[k], &node, &own);
        if (status != kOk || !taken_over(own)) {
            continue;
        }
        stick->first = stick->first < 0 ? plan->data[k] : stick->first;
        status = context->replace_node_subsets(context, registration, one, delegate);
    }
    free(one);
    free(plan);
    return status;
}

/* The entry of THIMBLE_STICKS for a stick, from behind its name; NULL where there is none. */
static const char *entry_of(const char *name)
{
    const char *list = getenv("THIMBLE_STICKS");
    size_t length = strlen(name);
    while (list != NULL && *list != '\0') {
        size_t word = strcspn(list, " ");
        if (word >= length && strncmp(list, name, length) == 0 &&
            (word == length || strchr("@!#", list[length]) != NULL)) {
            return list + length;
        }
        list += word + (list[word] == ' ');
    }
    return NULL;
}

/* Where a stick's vendor stands, as in /sys/bus/usb/devices: 1a6e without firmware, 18d1 with it. */
static void vendor_path(const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s/idVendor", getenv("THIMBLE_STICKS_STATE"), name);
}

static bool awake(const char *name)
{
    char path[512];
    char vendor[5] = "";
    vendor_path(name, path, sizeof(path));
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        size_t got = fread(vendor, 1, 4, file);
        vendor[got] = '\0';
        fclose(file);
    }
    return strcmp(vendor, "18d1") == 0;
}

/* Opening a stick gives it its firmware. */
static void wake(const char *name)
{
    char path[512];
    vendor_path(name, path, sizeof(path));
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        fputs("18d1\n", file);
        fclose(file);
    }
}

/* The sticks in libedgetpu's order: those without firmware first, then the others
 * (driver/beagle/beagle_usb_driver_provider.cc:209-231). */
static size_t enumerate(char names[][NAME_BYTES], size_t most)
{
    size_t count = 0;
    for (int turn = 0; turn < 2; turn++) {
        const char *list = getenv("THIMBLE_STICKS");
        while (list != NULL && *list != '\0' && count < most) {
            size_t word = strcspn(list, " ");
            size_t length = strcspn(list, " @!#");
            snprintf(names[count], NAME_BYTES, "%.*s", (int)length, list);
            count += awake(names[count]) == (turn == 1);
            list += word + (list[word] == ' ');
        }
    }
    return count;
}

/* With THIMBLE_STICKS_STATE a device is an index into the enumeration of that moment, and the stick
 * that it gave is noted; without, a device is the name of a stick. */
static const char *resolve(const char *device, char names[][NAME_BYTES])
{
    if (getenv("THIMBLE_STICKS_STATE") == NULL) {
        return device;
    }
    size_t count = enumerate(names, MOST_STICKS);
    size_t index = strtoul(device + strcspn(device, ":") + 1, NULL, 10);
    char path[512];
    snprintf(path, sizeof(path), "%s/opened", getenv("THIMBLE_STICKS_STATE"));
    FILE *noted = fopen(path, "a");
    if (index >= count || noted == NULL) {
        return device;
    }
    fprintf(noted, "%s\n", names[index]);
    fclose(noted);
    wake(names[index]);
    return names[index];
}

Delegate *
tflite_plugin_create_delegate(char **keys, char **values, size_t count, void (*report_error)(const char *))
{
    const char *device = "usb:0";
    for (size_t k = 0; k < count; k++) {
        if (strcmp(keys[k], "device") == 0) {
            device = values[k];
        } else if (report_error != NULL) {
            report_error("unknown option ");
            report_error(keys[k]);
            return NULL;
        }
    }
    char names[MOST_STICKS][NAME_BYTES];
    device = resolve(device, names);
    const char *entry = entry_of(device);
    if (entry == NULL || strlen(device) >= NAME_BYTES) {
        if (report_error != NULL && getenv("THIMBLE_STICKS_SILENT") == NULL) {
            report_error("no stick at ");
            report_error(device);
        }
        return NULL;
    }
    if (*entry == '!') {
        *(volatile int *)8 = 0;
    }
    Stick *stick = calloc(1, sizeof(Stick));
    stick->base.prepare = delegate_prepare;
    strcpy(stick->device, device);
    stick->behaviour = *entry;
    stick->left = *entry == '@' ? strtol(entry + 1, NULL, 10) : -1;
    return &stick->base;
}

void tflite_plugin_destroy_delegate(Delegate *delegate)
{
    free(delegate);
}

const char *edgetpu_version(void)
{
    return "BuildLabel(COMPILER=tests), RuntimeVersion(14)";
}

/* edgetpu_c.h */
struct edgetpu_device {
    int type;
    const char *path;
};

struct edgetpu_device *edgetpu_list_devices(size_t *count)
{
    static char paths[MOST_STICKS][512];
    char names[MOST_STICKS][NAME_BYTES];
    *count = getenv("THIMBLE_STICKS_STATE") == NULL ? 0 : enumerate(names, MOST_STICKS);
    struct edgetpu_device *devices = calloc(MOST_STICKS, sizeof(*devices));
    for (size_t k = 0; k < *count; k++) {
        snprintf(paths[k], sizeof(paths[k]), "%s/%s", getenv("THIMBLE_STICKS_STATE"), names[k]);
        devices[k] = (struct edgetpu_device){.type = 1, .path = paths[k]};
    }
    return devices;
}

void edgetpu_free_devices(struct edgetpu_device *devices)
{
    free(devices);
}

Delegate *edgetpu_create_delegate(int type, const char *path, const void *options, size_t count)
{
    (void)type;
    (void)options;
    (void)count;
    wake(strrchr(path, '/') + 1);
    return calloc(1, sizeof(Stick));
}

void edgetpu_free_delegate(Delegate *delegate)
{
    free(delegate);
}
