"""Parts that kinds of several families share for one file format or one element type.

`onnx`, `onnx_elementwise` and `onnx_pooling` hold ONNX readers. `int16` and `float32` make the
int16 or float32 form of an int8 kind, check what those forms accept, and hold arithmetic that their
references share.
"""
