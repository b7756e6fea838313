"""Functions of one operand, element by element.

Each is a row of the table `elementwise.functions`, of which `elementwise.kinds` makes kinds, and
`lookup` the one of ONNX's functions of int8. `tables` has the functions that LiteRT computes in a
table of float32 results; modules named after functions, `roots` and `sigmoid_s16` have quantised
arithmetic of another kind, to which rows refer. `cast`, `dequantize` and `quantize` change types.
The kernels are those of `elementwise.kernels`.
"""
