"""Operators that work element by element on two or three operands, which may broadcast.

Kinds: `add`, `sub` (arithmetic in `addition` for int8, `addition_s16` for int16), `mul`
(`multiplication`, `multiplication_s16`), `div`, `minimum` and `maximum` (`extremum`), `compare`,
`logical`, `prelu`, `select`, `squared_difference`. `binary_f32` holds the float32 forms. `common`
holds shape rules and broadcasting; `kernels` the kernels, the bytes they touch and their cost
terms; functions of one operand (`ops.unary`) use both. ONNX readers: `readers.onnx_elementwise`.
"""
