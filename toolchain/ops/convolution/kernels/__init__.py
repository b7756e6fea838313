"""Kernels of convolutions: a module for each C function, by the function's name.

Each module says of its function: the call and its arguments, the constants and how they are packed,
scratch, safe overlaps, the bytes that a call touches (from its arguments alone), and how often its
loops run. Modules with other names hold what several functions share: `shapes` and `windows` for
most, `blocks` for ordinary convolutions, `walks` for depthwise ones, `lanes` for Helium's vectors,
`partial_sums` for int32 sums, `int16` and `winograd`. CMSIS-NN's functions are in `cmsis_nn`.
"""
