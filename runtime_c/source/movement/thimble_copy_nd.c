/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_run.h"

#include <stddef.h>

/* The innermost loop. Single bytes, as a transpose of int8 moves them, go without a call. */
static void copy_runs(const thimble_copy_loop *loop, int32_t run_bytes, const int8_t *source, int8_t *target)
{
    const ptrdiff_t source_stride = loop->source_stride;
    const ptrdiff_t target_stride = loop->target_stride;
    int32_t count = loop->count;

    if (run_bytes == 1) {
        do {
            *target = *source;
            source += source_stride;
            target += target_stride;
        } while (--count > 0);
        return;
    }
    do {
        thimble_copy_run(target, source, run_bytes);
        source += source_stride;
        target += target_stride;
    } while (--count > 0);
}

void thimble_copy_nd(
    const thimble_copy_loop *loops, int32_t loop_count, int32_t run_bytes, const void *source, void *target)
{
    const int8_t *from = (const int8_t *)source;
    int8_t *to = (int8_t *)target;
    int32_t turn[THIMBLE_COPY_MAX_LOOPS] = {0};

    if (loop_count == 0) {
        thimble_copy_run(to, from, run_bytes);
        return;
    }
    for (;;) {
        copy_runs(&loops[loop_count - 1], run_bytes, from, to);
        int32_t level = loop_count - 2;
        while (level >= 0 && ++turn[level] == loops[level].count) {
            turn[level] = 0;
            from -= (ptrdiff_t)loops[level].source_stride * (loops[level].count - 1);
            to -= (ptrdiff_t)loops[level].target_stride * (loops[level].count - 1);
            level--;
        }
        if (level < 0) {
            return;
        }
        from += loops[level].source_stride;
        to += loops[level].target_stride;
    }
}
