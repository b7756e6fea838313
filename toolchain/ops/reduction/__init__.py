"""Operators that reduce axes: sums, means, extremes, indices of extremes.

Kinds: `mean` and `sum` (both in `mean_or_sum`), `reduce_max`, `arg_max`, `top_k`, `cumsum`;
`partial_sum` sums a part of the input in int32, and `requantise_sums` turns the int32 sums of any
operator that was summed in parts into int8. `common` and `common_f32` hold attributes, shape rule
and references; `kernels` the kernels, the bytes they touch and their cost terms. ONNX readers:
`readers.onnx_pooling`.
"""
