"""Kernels of pools, in modules that are named after C functions, as in `convolution.kernels`.

`windows` holds what they share. CMSIS-NN's functions are in `cmsis_nn`.
"""
