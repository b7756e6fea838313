#include "thimble_data.h"

#include <stddef.h>
#include <string.h>

static void fill(const thimble_pad_params *params, int8_t *from, const int8_t *to)
{
    const size_t step = (size_t)params->value_bytes;

    if (step == 1) {
        (void)memset(from, params->value[0], (size_t)(to - from));
        return;
    }
    for (; from < to; from += step) {
        (void)memcpy(from, params->value, step);
    }
}

void thimble_pad(const thimble_pad_params *params, const void *source, void *target)
{
    const thimble_copy_loop *loops = params->loops;
    const size_t run_bytes = (size_t)params->run_bytes;
    const int8_t *from = (const int8_t *)source;
    int8_t *filled = (int8_t *)target;
    int8_t *to = filled + params->start_bytes;
    const int8_t *end = filled + params->output_bytes;
    int32_t turn[THIMBLE_COPY_MAX_LOOPS] = {0};

    for (;;) {
        fill(params, filled, to);
        (void)memmove(to, from, run_bytes);
        filled = to + run_bytes;
        int32_t level = params->loop_count - 1;
        while (level >= 0 && ++turn[level] == loops[level].count) {
            turn[level] = 0;
            from -= (ptrdiff_t)loops[level].source_stride * (loops[level].count - 1);
            to -= (ptrdiff_t)loops[level].target_stride * (loops[level].count - 1);
            level--;
        }
        if (level < 0) {
            break;
        }
        from += loops[level].source_stride;
        to += loops[level].target_stride;
    }
    fill(params, filled, end);
}
