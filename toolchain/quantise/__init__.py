"""A float ONNX model to int8, and what a model that keeps float costs."""
