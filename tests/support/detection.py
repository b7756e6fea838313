"""A detector as TensorFlow's Object Detection API exports it: two heads, then post-processing."""

from __future__ import annotations

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np

from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.movement.reshape import Reshape

_BOXES = 36


def heads() -> Graph:
    """Box encodings and class scores of 36 anchors."""
    rng = np.random.default_rng(4)
    q = Quantisation((0.05,), (3,))
    tensors = [Tensor("image", (1, 6, 6, 3), DType.INT8, q)]
    ops = []
    for name, depth in (("boxes", 4), ("classes", 5)):
        weights = rng.integers(-127, 128, (depth, 1, 1, 3)).astype(np.int8)
        bias = rng.integers(-99, 99, depth).astype(np.int32)
        tensors += [
            Tensor(f"{name}_w", weights.shape, DType.INT8, Quantisation((0.01,), (0,)), weights),
            Tensor(f"{name}_b", (depth,), DType.INT32, Quantisation((0.0005,), (0,)), bias),
            Tensor(f"{name}_map", (1, 6, 6, depth), DType.INT8, q),
            Tensor(f"{name}_list", (1, _BOXES, depth), DType.INT8, q),
        ]
        inputs = ("image", f"{name}_w", f"{name}_b")
        ops.append(Op("conv2d", f"{name}_conv", inputs, (f"{name}_map",), Conv2D()))
        attributes = Reshape((1, _BOXES, depth))
        rows = (f"{name}_map",), (f"{name}_list",)
        ops.append(Op("reshape", f"{name}_reshape", *rows, attributes))
    scores = Tensor("scores", (1, _BOXES, 5), DType.INT8, Quantisation((1 / 256,), (-128,)))
    ops.append(Op("logistic", "logistic", ("classes_list",), ("scores",), Attributes()))
    return Graph.build("heads", [*tensors, scores], ops, ["image"], ["boxes_list", "scores"])


def detector_bytes() -> bytes:
    """`heads` with TFLite_Detection_PostProcess behind them, and a SQUEEZE of what it gives."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(tflite_bytes(heads())))
    (main,) = model.subgraphs
    anchors = schema.BufferT()
    anchors.data = np.frombuffer(np.zeros((_BOXES, 4), np.float32).tobytes(), np.uint8)
    model.buffers.append(anchors)

    def tensor(name: str, shape: list[int], buffer: int = 0) -> int:
        made = schema.TensorT()
        made.name, made.shape, made.buffer = name, shape, buffer
        made.type = schema.TensorType.FLOAT32
        main.tensors.append(made)
        return len(main.tensors) - 1

    def operator(code: int, inputs: list[int], outputs: list[int], custom: str = "") -> None:
        made = schema.OperatorCodeT()
        made.builtinCode, made.deprecatedBuiltinCode = code, min(code, 127)
        made.customCode = custom or None
        model.operatorCodes.append(made)
        op = schema.OperatorT()
        op.opcodeIndex = len(model.operatorCodes) - 1
        op.inputs, op.outputs = inputs, outputs
        main.operators.append(op)

    names = [t.name.decode() for t in main.tensors]
    reads = [names.index("boxes_list"), names.index("scores")]
    reads.append(tensor("anchors", [_BOXES, 4], len(model.buffers) - 1))
    gives = [tensor("TFLite_Detection_PostProcess", [1, 10, 4])]
    gives += [tensor(f"TFLite_Detection_PostProcess:{i}", [1, 10]) for i in (1, 2)]
    gives.append(tensor("TFLite_Detection_PostProcess:3", [1]))
    operator(schema.BuiltinOperator.CUSTOM, reads, gives, "TFLite_Detection_PostProcess")
    flat = tensor("flat", [10])
    operator(schema.BuiltinOperator.SQUEEZE, [gives[1]], [flat])
    main.outputs = [gives[0], flat, *gives[2:]]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
