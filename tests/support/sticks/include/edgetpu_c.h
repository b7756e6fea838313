/* What runtime_tflite.c asks of libedgetpu, for fresh.c: declared here anew, for tests without its header. */
#ifndef FRESH_EDGETPU_C_H
#define FRESH_EDGETPU_C_H

#include "tensorflow/lite/c/c_api.h"

enum edgetpu_device_type { EDGETPU_APEX_PCI = 0, EDGETPU_APEX_USB = 1 };

struct edgetpu_device {
    enum edgetpu_device_type type;
    const char *path;
};

struct edgetpu_option;

struct edgetpu_device *edgetpu_list_devices(size_t *count);
void edgetpu_free_devices(struct edgetpu_device *devices);
TfLiteDelegate *edgetpu_create_delegate(enum edgetpu_device_type type,
                                        const char *path,
                                        const struct edgetpu_option *options,
                                        size_t option_count);
void edgetpu_free_delegate(TfLiteDelegate *delegate);

#endif
