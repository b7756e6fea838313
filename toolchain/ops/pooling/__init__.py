"""Pools: maximum and average over windows of an image.

Kinds: `max_pool2d` and `average_pool2d`, of int8, int16 and float32. `common` holds what they
share: attributes, shape rule, TFLite reader and writer. `kernels` has a module for each C function.
ONNX readers: `readers.onnx_pooling`.
"""
