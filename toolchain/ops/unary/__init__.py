"""Functions of one operand, element by element.

There is one kind per file. Most int8 functions are tables of 256 results: `float_table` makes such
kinds from TFLite's functions, `lookup` from ONNX's. int16 functions interpolate in tables
(`float_table_s16`, `sigmoid_s16`); `unary_f32` holds the float32 forms. The kernels are those of
`elementwise.kernels`.
"""
