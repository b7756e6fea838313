"""Kernels of convolutions, in modules that are named after C functions: functions that
compute the same thing in other numbers, types or shapes share one, whose `FUNCTIONS` names them.

Each module says of its functions: the call and its arguments, the constants and how they are
packed, scratch, safe overlaps, the bytes that a call touches (from its arguments alone), and how
often its loops run. Modules with other names hold what several functions share: `shapes` and
`windows` for most, `blocks` for ordinary convolutions, `walks` for depthwise ones, `lanes` for
Helium's vectors, `int16`. CMSIS-NN's functions are in `cmsis_nn`.
"""
