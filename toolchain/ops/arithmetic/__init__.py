"""Exact integer and float arithmetic of TFLite, ONNX Runtime and the C library, in NumPy.

TFLite's fixed point: `fixed_point` (int32), `fixed_s16` (int16). ONNX Runtime's rounding:
`onnx_rounding`. Integer forms that equal a longer computation and are cheaper: `affine_form`,
`high_word`, `merged_rounding`, `single_rounding`. Functions: `libm` and `tanhf` as C libraries
compute them, `float_math` as Thimble's kernels do. `activation` holds fused activations, `rounding`
names whose rounding an operator follows. `packing` bounds the sums of filters, scales them and
packs words. The families import this one and the kit.
"""
