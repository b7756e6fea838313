"""Convolutions: 2-D, depthwise and transposed, and the int32 sums of parts of one.

Kinds: `conv2d`, `depthwise_conv2d`, `transpose_conv2d`, each with its int8 form in `_s8`;
`partial_conv2d`; `conv3d`. `common` holds what they share: attributes, TFLite reader and writer;
`sums` what references compute. `kernels` has the C functions. Which of them takes an int8 operator
is chosen in `conv2d_choice`, `depthwise_choice`, `depthwise_3x3` and `cmsis_nn`. `parts` makes
their arguments, `endings` says how the sums of channels end, `overlaps` where an output may lie
over its input. `reductions` lists the axes that can be summed in parts.
"""
