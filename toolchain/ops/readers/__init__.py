"""What readers of several kinds share: ONNX operands, element types."""
