"""Kernels of fully connected layers and matrix products: a module for each C function, by the
function's name, as in `convolution.kernels`.

`dense` holds what fully connected layers share, `unit_sums` what their int32 sums do, `products`
what products of two matrices do. CMSIS-NN's functions are in `cmsis_nn`.
"""
