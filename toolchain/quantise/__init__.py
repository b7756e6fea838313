"""Convert a float ONNX model to int8, and estimate what a model that keeps float costs."""
