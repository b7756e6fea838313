/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_run.h"

#include <stddef.h>

static void fill(const thimble_pad_params *params, int8_t *from, const int8_t *to)
{
    if (params->value_bytes == 1) {
        thimble_fill_run(from, params->value[0], (int32_t)(to - from));
        return;
    }
    for (; from < to; from += params->value_bytes) {
        (void)memcpy(from, params->value, (size_t)params->value_bytes);
    }
}

void thimble_pad(const thimble_pad_params *params, const void *source, void *target)
{
    const thimble_copy_loop *loops = params->loops;
    const int8_t *from = (const int8_t *)source;
    int8_t *filled = (int8_t *)target;
    int8_t *to = filled + params->start_bytes;
    const int8_t *end = filled + params->output_bytes;
    int32_t turn[THIMBLE_COPY_MAX_LOOPS] = {0};
    int32_t level;

    do {
        fill(params, filled, to);
        thimble_copy_run(to, from, params->run_bytes);
        filled = to + params->run_bytes;
        level = params->loop_count - 1;
        while (level >= 0 && ++turn[level] == loops[level].count) {
            turn[level] = 0;
            from -= (ptrdiff_t)loops[level].source_stride * (loops[level].count - 1);
            to -= (ptrdiff_t)loops[level].target_stride * (loops[level].count - 1);
            level--;
        }
        if (level >= 0) {
            from += loops[level].source_stride;
            to += loops[level].target_stride;
        }
    } while (level >= 0);
    fill(params, filled, end);
}
