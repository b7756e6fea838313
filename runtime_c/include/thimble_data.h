/* Kernels that move data: copies between strided places, padding, resizing, index of the extreme. */
#ifndef THIMBLE_DATA_H
#define THIMBLE_DATA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One loop around a run of contiguous bytes; strides in bytes, the source's may be negative. */
typedef struct {
    int32_t count;
    int32_t source_stride;
    int32_t target_stride;
} thimble_copy_loop;

/** The most loops that thimble_copy_nd takes. */
#define THIMBLE_COPY_MAX_LOOPS 6

/**
 * Copy runs of bytes between two strided places that do not overlap.
 *
 * @param loops       loop_count loops, outermost first (NULL where there are none)
 * @param loop_count  0 to THIMBLE_COPY_MAX_LOOPS
 * @param run_bytes   contiguous bytes per turn of the innermost loop, at least 1
 * @param source      first byte read
 * @param target      first byte written
 */
void thimble_copy_nd(
    const thimble_copy_loop *loops, int32_t loop_count, int32_t run_bytes, const void *source, void *target);

/** How a tensor lies inside its padded copy. */
typedef struct {
    const thimble_copy_loop *loops; /**< loops around one run, ascending in the output */
    int32_t loop_count;             /**< 0 to THIMBLE_COPY_MAX_LOOPS */
    int32_t run_bytes;              /**< contiguous bytes per turn of the innermost loop */
    int32_t start_bytes;            /**< where in the output the first run goes */
    int32_t output_bytes;           /**< size of the output */
    const uint8_t *value;           /**< what to fill with, value_bytes long */
    int32_t value_bytes;
} thimble_pad_params;

/**
 * Copy a tensor into a larger one and fill what surrounds it.
 *
 * The output is written once, in order, so it may share memory with the input where the input's last run
 * does not have to move up.
 */
void thimble_pad(const thimble_pad_params *params, const void *source, void *target);

#ifdef __cplusplus
}
#endif

#endif
