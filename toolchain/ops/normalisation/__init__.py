"""Softmax, and normalisations of rows or channels.

Kinds: `softmax` (`softmax_s8`, `softmax_s16`, `softmax_f32`), `softmax_once` (ONNX's, rounded
once), `log_softmax`, `l2_normalization`, `layer_norm`, `batch_norm`. Each file holds its kernel;
`rows` says which bytes the kernels touch.
"""
