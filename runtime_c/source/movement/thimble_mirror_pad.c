/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"

#include <stddef.h>
#include <string.h>

static int32_t reflect(int32_t index, int32_t size, int32_t symmetric)
{
    if (index < 0) {
        return -index - symmetric;
    }
    return index < size ? index : 2 * size - 2 - index + symmetric;
}

void thimble_mirror_pad(const thimble_mirror_pad_params *params, const void *source, void *target)
{
    const thimble_mirror_axis *axes = params->axes;
    const int8_t *from = (const int8_t *)source;
    int8_t *to = (int8_t *)target;
    int32_t index[THIMBLE_MIRROR_MAX_AXES] = {0};
    int32_t level;

    do {
        ptrdiff_t offset = 0;
        for (level = 0; level < params->axis_count; level++) {
            const int32_t place = index[level] - axes[level].before;
            offset += (ptrdiff_t)axes[level].stride * reflect(place, axes[level].size, params->symmetric);
        }
        (void)memcpy(to, from + offset, (size_t)params->run_bytes);
        to += params->run_bytes;
        level = params->axis_count - 1;
        while (level >= 0 && ++index[level] == axes[level].count) {
            index[level--] = 0;
        }
    } while (level >= 0);
}
