"""Exact integer and float arithmetic of TFLite, ONNX Runtime and the C library."""
