"""Image resizing.

Kinds: `resize_bilinear` (TFLite; int8 and int16 in `bilinear`, float32 in `bilinear_f32`),
`resize_linear` (ONNX's rounding) and `resize_nearest`. `common` holds attributes, shape rule,
TFLite reader and writer; `extents` says which pixels the kernels read.
"""
