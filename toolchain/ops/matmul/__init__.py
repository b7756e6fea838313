"""Fully connected layers and products of matrices.

Kinds: `fully_connected` and `batch_matmul`, of int8, int16 and float32; `partial_fully_connected`
and `partial_matmul` are int32 sums over a part of the inner dimension. `common` holds what the two
products share, `kernels` a module for each C function.
"""
