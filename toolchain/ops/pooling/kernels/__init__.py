"""Kernels of pools: a module for each C function, by the function's name, as in
`convolution.kernels`.

`windows` holds what Thimble's share, `float32` what those of float32 do. CMSIS-NN's functions are
in `cmsis_nn`.
"""
