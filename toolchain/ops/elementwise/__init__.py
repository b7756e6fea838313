"""Operators that work element by element on two or three operands, which may broadcast.

`functions` is the table of element-wise functions, of one operand and of two; `rows` says what a
row holds, `kinds` makes kinds of the rows. Rows refer to the arithmetic of int8 and int16: of one
operand in `ops.unary`, of two in `addition` (`add`, `sub`), `multiplication` (`mul`), `div`,
`extremum` (`minimum`, `maximum`), `prelu` and `squared_difference`; of plain integers in
`integers`. `compare`, `logical`, `select` and `add_n` are kinds of their own. `common` holds shape
rules and broadcasting; `kernels` the kernels, the bytes they touch and their cost terms. ONNX
readers: `readers.onnx_elementwise`.
"""
