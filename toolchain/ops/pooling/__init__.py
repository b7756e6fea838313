"""Pools: maximum and average over windows of an image.

Kinds: `max_pool2d` and `average_pool2d`, of int8, int16 and float32. `common` holds what they
share: attributes, shape rule, TFLite reader and writer. `kernels` holds Thimble's kernels and
CMSIS-NN's, the bytes they touch and their cost terms. ONNX readers: `readers.onnx_pooling`.
"""
