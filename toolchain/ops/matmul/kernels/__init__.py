"""Kernels of fully connected layers and matrix products, in modules that are named after C
functions, as in `convolution.kernels`.

`dense` holds what fully connected layers share, `products` what products of two matrices do.
CMSIS-NN's functions are in `cmsis_nn`.
"""
