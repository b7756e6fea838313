/* SPDX-License-Identifier: Apache-2.0 */
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
 * Copy runs of bytes between two strided places.
 *
 * They may overlap if every run moves down (or stays) and the runs ascend in memory.
 *
 * @param loops       loop_count loops, outermost first (NULL where there are none)
 * @param loop_count  0 to THIMBLE_COPY_MAX_LOOPS
 * @param run_bytes   contiguous bytes per turn of the innermost loop, at least 1
 * @param source      first byte read
 * @param target      first byte written
 */
void thimble_copy_nd(
    const thimble_copy_loop *loops, int32_t loop_count, int32_t run_bytes, const void *source, void *target);

/**
 * memmove. Newlib's copies byte by byte if data move up over themselves or are not aligned; this one copies
 * words, and on cores with Helium vectors.
 */
void thimble_move(void *target, const void *source, int32_t size_bytes);

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
 * The output is written once, in ascending order. It may overlap the input if the input's last run does not
 * have to move up.
 */
void thimble_pad(const thimble_pad_params *params, const void *source, void *target);

/** One dimension of a tensor and of its mirror-padded copy. */
typedef struct {
    int32_t size;   /**< elements in the input */
    int32_t before; /**< reflected elements ahead of them */
    int32_t count;  /**< elements in the output */
    int32_t stride; /**< bytes from one element of the input to the next */
} thimble_mirror_axis;

/** The most axes that thimble_mirror_pad takes. */
#define THIMBLE_MIRROR_MAX_AXES 6

typedef struct {
    const thimble_mirror_axis *axes; /**< axes around one run, outermost first */
    int32_t axis_count;              /**< 0 to THIMBLE_MIRROR_MAX_AXES */
    int32_t run_bytes;               /**< contiguous bytes that no axis takes apart */
    int32_t symmetric;               /**< 1: the border is repeated; 0: it is not */
} thimble_mirror_pad_params;

/** Copy a tensor into a larger one and surround it with its reflection; any element type. They may not
 * overlap. */
void thimble_mirror_pad(const thimble_mirror_pad_params *params, const void *source, void *target);

/** An NHWC image and its new size. */
typedef struct {
    int32_t batches;
    int32_t input_height;
    int32_t input_width;
    int32_t output_height;
    int32_t output_width;
    int32_t pixel_bytes;    /**< channels times the size of an element */
    const int16_t *rows;    /**< for each output row the row of the input to copy */
    const int16_t *columns; /**< for each output column the column of the input */
} thimble_resize_nearest_params;

/** Resize NHWC images by copying pixels; any element type. Pixels are written in ascending order; a row that
 *  repeats is copied from the output. */
void thimble_resize_nearest(const thimble_resize_nearest_params *params, const void *source, void *target);

/** Output position i lies at start + step * i of the input, in fixed point. */
typedef struct {
    int32_t start;
    int32_t step;
} thimble_resize_line;

/** Fraction bits of the lines that thimble_resize_bilinear_s8 takes. */
#define THIMBLE_BILINEAR_BITS 10

/** An NHWC image and its new size. */
typedef struct {
    int32_t batches;
    int32_t input_height;
    int32_t input_width;
    int32_t output_height;
    int32_t output_width;
    int32_t channels;
    thimble_resize_line rows;
    thimble_resize_line columns;
} thimble_resize_bilinear_params;

/** Resize NHWC images by bilinear interpolation (TFLite `ResizeBilinearInteger`). Pixels are written in
 * ascending order, each element after its four neighbours are read. */
void thimble_resize_bilinear_s8(const thimble_resize_bilinear_params *params,
                                const int8_t *source,
                                int8_t *target);

/** The same of int16. */
void thimble_resize_bilinear_s16(const thimble_resize_bilinear_params *params,
                                 const int16_t *source,
                                 int16_t *target);

/** A dense input seen as [outer][count][inner]. */
typedef struct {
    int32_t outer;
    int32_t count;
    int32_t inner;
    int32_t flip;        /**< 0 for the largest element, -1 for the smallest */
    int32_t index_bytes; /**< 4: the output is int32; 8: int64 */
} thimble_arg_max_params;

/** Index of the extreme of each line of `count` elements, the first of equals; output [outer][inner]. */
void thimble_arg_max_s8(const thimble_arg_max_params *params, const int8_t *source, void *target);
void thimble_arg_max_s32(const thimble_arg_max_params *params, const int32_t *source, void *target);

/** The same of float32. NaN is passed over, but for one that comes first. */
void thimble_arg_max_f32(const thimble_arg_max_params *params, const float *source, void *target);

/** Data as [batches][outer][count] runs, indices as [batches][picks]. */
typedef struct {
    int32_t batches;
    int32_t outer;
    int32_t count;
    int32_t run_bytes;
    int32_t picks;
    int32_t index_bytes; /**< 4: the indices are int32; 8: int64 */
} thimble_gather_params;

/** Copy the runs that the indices pick, [batches][outer][picks] of them. Returns 0, or -1 at the first index
 *  that is out of range. */
int32_t
thimble_gather(const thimble_gather_params *params, const void *data, const void *indices, void *target);

/** Rows of `depth` coordinates, int32 or int64, each of which names a run of the data. */
typedef struct {
    int32_t rows;
    int32_t depth;
    int32_t run_bytes;
    int32_t index_bytes; /**< 4: the coordinates are int32; 8: int64 */
    int32_t sizes[8];    /**< of the first `depth` axes of the data */
} thimble_rows_params;

/** Copy the runs that the rows name. Returns 0, or -1 at the first row that names none. */
int32_t
thimble_gather_nd(const thimble_rows_params *params, const void *data, const void *indices, void *target);

/** Data seen as [outer][first][middle][second] runs of `run_bytes`. */
typedef struct {
    int32_t outer;
    int32_t first;
    int32_t middle;
    int32_t second;
    int32_t run_bytes;
    int32_t length_bytes; /**< 4: the lengths are int32; 8: int64 */
    int32_t
        batch_first; /**< 1: `first` counts batches and `second` the elements of sequences; 0: vice versa */
} thimble_reverse_sequence_params;

/** Each batch's first elements in reverse, as many as its length says, and the others as they are. Returns 0,
 * or -1 if a length is below 0 or beyond the sequence. Input and output may not overlap. */
int32_t thimble_reverse_sequence(const thimble_reverse_sequence_params *params,
                                 const void *data,
                                 const void *lengths,
                                 void *target);

/** Set the `size` elements of the target to 0, and add each update to the run that its row names. Returns as
 *  above. Neither operand may overlap the target. */
int32_t thimble_scatter_nd_f32(const thimble_rows_params *params,
                               int32_t size,
                               const void *indices,
                               const float *updates,
                               float *target);
int32_t thimble_scatter_nd_s32(const thimble_rows_params *params,
                               int32_t size,
                               const void *indices,
                               const int32_t *updates,
                               int32_t *target);
int32_t thimble_scatter_nd_s64(const thimble_rows_params *params,
                               int32_t size,
                               const void *indices,
                               const int64_t *updates,
                               int64_t *target);

/** The same for bytes, signed or not, whose sums keep their last 8 bits. `zero` stands for 0. */
int32_t thimble_scatter_nd_s8(const thimble_rows_params *params,
                              int32_t size,
                              int32_t zero,
                              const void *indices,
                              const int8_t *updates,
                              int8_t *target);

/** The same for bools: true where one of the updates is. */
int32_t thimble_scatter_nd_bool(const thimble_rows_params *params,
                                int32_t size,
                                const void *indices,
                                const uint8_t *updates,
                                uint8_t *target);

/** Of each axis: the size of the data, and that of the update. */
typedef struct {
    int32_t axes;
    int32_t element_bytes;
    int32_t index_bytes; /**< 4: the starts are int32; 8: int64 */
    int32_t sizes[8];
    int32_t update_sizes[8];
} thimble_update_slice_params;

/** Copy the data, with the update over the part that begins at `starts`, one for each axis; they are moved so
 *  that the update fits. The target may be the data. */
void thimble_update_slice(const thimble_update_slice_params *params,
                          const void *data,
                          const void *update,
                          const void *starts,
                          void *target);

#ifdef __cplusplus
}
#endif

#endif
