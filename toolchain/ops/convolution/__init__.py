"""Convolutions: 2-D, depthwise and transposed, and the int32 sums of parts of one.

Kinds: `conv2d`, `depthwise_conv2d`, `transpose_conv2d`, each with its int8 form in `_s8` and its
float32 form in `_f32`; `partial_conv2d`. `common` holds what they share: attributes, TFLite reader
and writer. Kernel choice is in `kernels` (int8), `kernels_s16` and `kernels_f32`; `structs` makes
their arguments, `packing` their constants. `extents` says which bytes the kernels touch, `overlaps`
where their output may lie over their input, `terms` how often their loops run (for the cost model).
`reductions` lists the axes that can be summed in parts.
"""
