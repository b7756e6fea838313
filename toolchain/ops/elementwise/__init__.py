"""Operators that work element by element on two or three operands, which may broadcast.

`functions` is the table of element-wise functions, of one operand (`ops.unary`) and of two; `rows`
says what a row holds, `kinds` makes kinds of the rows of two operands, `quantised` their int8 and
int16 forms of an arithmetic: `addition` (`add`, `sub`), `multiplication` (`mul`), `div`, `extremum`
(`minimum`, `maximum`), `prelu`, `squared_difference`. `compare`, `logical`, `select` and `add_n`
are kinds of their own. `common` holds shape rules and broadcasting; `kernels` the kernels, the
bytes they touch and their cost terms; `ops.unary` uses both. ONNX readers:
`readers.onnx_elementwise`.
"""
