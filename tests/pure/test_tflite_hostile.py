"""TFLite files that are truncated, corrupt or hostile: one clear error, or a clean graph."""

from __future__ import annotations

import random
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.long import mostly_long
from tests.support.mutations import damaged_bytes, damaged_fields, packed, unpacked
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import HOST
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends import load_model
from toolchain.frontends.tflite import FRONT_END
from toolchain.frontends.tflite.options import options_of
from toolchain.ir import Graph
from toolchain.memory.problem import memory_problem
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.ops.lowering import lower
from toolchain.passes import prepare

pytestmark = pytest.mark.slow

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
KINDS = sorted(kind for kind, spec in forms().items() if spec.tflite is not None)
SLOWEST_SECONDS = 60.0
"""Of this process's processor time, which other processes do not add to."""


def read(data: bytes) -> Graph:
    return FRONT_END.read(data, Path("model.tflite"))


def read_or_refuse(data: bytes) -> None:
    """Anything but InputError fails the test; so does a graph that the passes choke on."""
    start = time.process_time()
    try:
        graph = prepare(check(read(data))).graph
        memory_problem(lower(graph, HOST))
    except InputError as error:
        assert str(error)
    assert time.process_time() - start < SLOWEST_SECONDS


def test_damaged_bytes() -> None:
    rng = random.Random(1)
    data = DIGITS.read_bytes()
    for _ in range(600):
        read_or_refuse(damaged_bytes(data, rng))


@pytest.mark.parametrize("files", mostly_long([20, 40], [20]))
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_fields_of_one_operator(kind: str, files: int) -> None:
    rng = random.Random(zlib.crc32(kind.encode()))
    numbers = np.random.default_rng(rng.getrandbits(32))
    for _ in range(files):
        read_or_refuse(damaged_fields(tflite_bytes(forms()[kind].sample(numbers)), rng))


def test_damaged_fields_of_a_model() -> None:
    rng = random.Random(2)
    data = DIGITS.read_bytes()
    for _ in range(150):
        read_or_refuse(damaged_fields(data, rng))


def test_every_truncation_is_refused() -> None:
    data = DIGITS.read_bytes()
    for size in (*range(64), *range(64, len(data) - 1, 997)):
        with pytest.raises(InputError):
            read(data[:size])


def refusal(change: Any) -> str:
    """The message for the digits model after `change(model, main subgraph)`."""
    model = unpacked(DIGITS.read_bytes())
    change(model, model.subgraphs[0])
    with pytest.raises(InputError) as caught:
        read(packed(model))
    return str(caught.value)


def test_cycle_is_named() -> None:
    def swap(model: Any, main: Any) -> None:
        main.operators[0], main.operators[1] = main.operators[1], main.operators[0]

    message = refusal(swap)
    assert "(operator 0) reads" in message and "neither computed before it" in message


def test_tensor_written_twice() -> None:
    def twice(model: Any, main: Any) -> None:
        main.operators[1].outputs = main.operators[0].outputs

    assert "(operator 1) writes" in refusal(twice)


def test_no_subgraph() -> None:
    assert "no subgraph" in refusal(lambda model, main: setattr(model, "subgraphs", []))


def test_several_subgraphs() -> None:
    message = refusal(lambda model, main: model.subgraphs.append(main))
    assert "holds 2 subgraphs" in message


def test_huge_shape_is_refused_at_once() -> None:
    def huge(model: Any, main: Any) -> None:
        main.tensors[main.inputs[0]].shape = [2**31 - 1] * 4

    assert "impossible shape" in refusal(huge)


def test_open_dimension_past_the_batch() -> None:
    def opened(model: Any, main: Any) -> None:
        tensor = main.tensors[main.inputs[0]]
        tensor.shapeSignature = [-1, -1, *tensor.shape[2:]]

    assert "convert with a fixed input shape" in refusal(opened)


def test_open_batch_is_one() -> None:
    model = unpacked(DIGITS.read_bytes())
    tensor = model.subgraphs[0].tensors[model.subgraphs[0].inputs[0]]
    tensor.shapeSignature = [-1, *tensor.shape[1:]]
    graph = read(packed(model))
    assert graph.tensors[graph.inputs[0]].shape[0] == 1


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_scale_that_is_no_positive_number(scale: float) -> None:
    def spoil(model: Any, main: Any) -> None:
        main.tensors[main.operators[0].outputs[0]].quantization.scale = [scale]

    assert "not a positive number" in refusal(spoil)


def test_zero_point_out_of_range() -> None:
    def spoil(model: Any, main: Any) -> None:
        main.tensors[main.operators[0].outputs[0]].quantization.zeroPoint = [200]

    assert "zero point outside int8" in refusal(spoil)


def test_sparse_tensor() -> None:
    def spoil(model: Any, main: Any) -> None:
        main.tensors[main.operators[0].inputs[1]].sparsity = schema.SparsityParametersT()

    assert "stored sparse" in refusal(spoil)


def test_int4_weights_of_another_size() -> None:
    def spoil(model: Any, main: Any) -> None:
        main.tensors[main.operators[0].inputs[1]].type = schema.TensorType.INT4

    message = refusal(spoil)
    assert "corrupt: tensor" in message and "bytes of data, not" in message


def test_external_buffer() -> None:
    def spoil(model: Any, main: Any) -> None:
        main.tensors[main.operators[0].inputs[1]].externalBuffer = 1

    assert "lies in another file" in refusal(spoil)


def test_buffer_of_the_wrong_size() -> None:
    def spoil(model: Any, main: Any) -> None:
        tensor = main.tensors[main.operators[0].inputs[1]]
        model.buffers[tensor.buffer].data = model.buffers[tensor.buffer].data[:-1]

    assert "bytes of data" in refusal(spoil)


def test_own_bytes_of_a_buffer_come_before_those_at_its_offset() -> None:
    """As in LiteRT; tflite-micro knows no offsets."""

    def spoil(model: Any, main: Any) -> None:
        tensor = main.tensors[main.operators[0].inputs[1]]
        buffer = model.buffers[tensor.buffer]
        buffer.offset, buffer.size = 8, len(buffer.data)

    model = unpacked(DIGITS.read_bytes())
    spoil(model, model.subgraphs[0])
    name = model.subgraphs[0].tensors[model.subgraphs[0].operators[0].inputs[1]].name.decode()
    sound, found = (
        read(data).tensors[name].constant for data in (DIGITS.read_bytes(), packed(model))
    )
    np.testing.assert_array_equal(found, sound)

    def shorter(model: Any, main: Any) -> None:
        spoil(model, main)
        buffer = model.buffers[main.tensors[main.operators[0].inputs[1]].buffer]
        buffer.data = buffer.data[:1]

    assert "has 1 bytes of data, not" in refusal(shorter)


def test_variable_with_data() -> None:
    """LiteRT refuses it; tflite-micro begins at zero all the same."""

    def change(model: Any, main: Any) -> None:
        types: Any = schema
        state = next(tensor for tensor in main.tensors if tensor.isVariable)
        data = types.BufferT()
        data.data = np.ones(4, np.uint8)
        model.buffers.append(data)
        state.buffer = len(model.buffers) - 1

    with pytest.raises(InputError, match=r"is a variable, which begins at zero, yet .* 4 bytes"):
        read(single("svdf", change))


def test_buffer_past_the_end_of_the_file() -> None:
    def spoil(model: Any, main: Any) -> None:
        tensor = main.tensors[main.operators[0].inputs[1]]
        buffer = model.buffers[tensor.buffer]
        buffer.data, buffer.offset, buffer.size = None, 2**40, 100

    assert "lies past its end" in refusal(spoil)


def custom(name: str) -> Any:
    def change(model: Any, main: Any) -> None:
        code = model.operatorCodes[main.operators[0].opcodeIndex]
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode = name

    return change


def test_compiled_edge_tpu_model() -> None:
    assert "before edgetpu_compiler" in refusal(custom("edgetpu-custom-op"))


def test_custom_operator_is_named() -> None:
    message = refusal(custom("Audio_Spectrogram"))
    assert "Audio_Spectrogram (operator" in message and "leave it to the caller" in message


def test_all_unsupported_operators_in_one_error() -> None:
    def spoil(model: Any, main: Any) -> None:
        for code in model.operatorCodes:
            code.builtinCode = schema.BuiltinOperator.BITCAST
            code.deprecatedBuiltinCode = 127
            code.version = 1

    model = unpacked(DIGITS.read_bytes())
    spoil(model, model.subgraphs[0])
    count = len(model.subgraphs[0].operators)
    with pytest.raises(UnsupportedError) as caught:
        read(packed(model))
    first, *rest = str(caught.value).split("\n")
    assert f"{count} of {count} operators are not supported" in first
    assert len(rest) == 1 and ", ".join(str(i) for i in range(count)) in rest[0]


def test_float_model_is_told_how_to_quantise() -> None:
    def spoil(model: Any, main: Any) -> None:
        for tensor in main.tensors:
            if tensor.type == schema.TensorType.INT8 and not len(
                model.buffers[tensor.buffer].data
                if model.buffers[tensor.buffer].data is not None
                else ()
            ):
                tensor.type = schema.TensorType.FLOAT32

    message = refusal(spoil)
    assert "float32" in message and "representative_dataset" in message


def convolution(main: Any, model: Any) -> Any:
    """The first convolution."""
    kind = schema.BuiltinOperator.CONV_2D
    return next(o for o in main.operators if model.operatorCodes[o.opcodeIndex].builtinCode == kind)


@pytest.mark.parametrize(
    ("field", "number"),
    [
        ("fusedActivationFunction", -1),
        ("fusedActivationFunction", 6),
        ("fusedActivationFunction", 127),
        ("padding", -1),
        ("padding", 2),
        ("quantizedBiasType", 100),
    ],
)
def test_enum_that_the_schema_lacks(field: str, number: int) -> None:
    def spoil(model: Any, main: Any) -> None:
        setattr(convolution(main, model).builtinOptions, field, number)

    assert re.search(rf"{field} of CONV_2D \(operator \d+\) is {number}, which", refusal(spoil))


def test_element_type_that_the_schema_lacks() -> None:
    def spoil(model: Any, main: Any) -> None:
        main.tensors[main.operators[0].inputs[1]].type = 77

    assert "is 77, which TensorType of TFLite's schema does not have" in refusal(spoil)


def test_fused_activation_without_a_kernel() -> None:
    def spoil(model: Any, main: Any) -> None:
        convolution(main, model).builtinOptions.fusedActivationFunction = 5

    assert "the fused activation SIGN_BIT" in refusal(spoil)


def test_options_of_another_operator() -> None:
    def spoil(model: Any, main: Any) -> None:
        operator = convolution(main, model)
        operator.builtinOptionsType = schema.BuiltinOptions.Pool2DOptions
        operator.builtinOptions = schema.Pool2DOptionsT()

    assert "has Pool2DOptions, which another operator takes" in refusal(spoil)


def test_missing_options() -> None:
    def spoil(model: Any, main: Any) -> None:
        operator = convolution(main, model)
        operator.builtinOptionsType, operator.builtinOptions = 0, None

    assert "has no options" in refusal(spoil)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_writes_the_options_that_it_reads(kind: str) -> None:
    """An operator without an entry in the table of options would lose those that it needs."""
    model = unpacked(tflite_bytes(forms()[kind].sample(np.random.default_rng(0))))
    names = {v: k for k, v in vars(schema.BuiltinOptions).items() if not k.startswith("_")}
    kinds = {v: k for k, v in vars(schema.BuiltinOperator).items() if not k.startswith("_")}
    for operator in model.subgraphs[0].operators:
        code = model.operatorCodes[operator.opcodeIndex].builtinCode
        given = names[operator.builtinOptionsType]
        assert given in ("NONE", options_of(kinds[code]))


def test_names_are_made_unique_and_kept() -> None:
    model = unpacked(DIGITS.read_bytes())
    tensors = model.subgraphs[0].tensors
    for tensor in tensors:
        tensor.name = "*/ int x;"
    tensors[0].name = ""
    tensors[1].name = "größe"
    graph = read(packed(model))
    assert len(graph.tensors) == len(read(DIGITS.read_bytes()).tensors)
    assert {"*/ int x;", "größe", "tensor_0"} & set(graph.tensors)
    assert check(graph) is graph


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        load_model(tmp_path / "absent.tflite")
    with pytest.raises(InputError, match="cannot be read"):
        load_model(tmp_path)


def test_file_of_another_kind(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("nothing of the sort")
    with pytest.raises(InputError, match="no model file"):
        load_model(other)


class _PackedOnce:
    """A tensor that is written once and pointed to as often as it is packed."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.offset = 0

    def Pack(self, builder: Any) -> int:  # noqa: N802, the object API's name
        if not self.offset:
            self.offset = self.tensor.Pack(builder)
        return self.offset


def test_parts_that_overlap_many_times_are_refused_quickly() -> None:
    """20000 tensors are one and the same, with a long name: a small file, much to read."""
    model = unpacked(DIGITS.read_bytes())
    main = model.subgraphs[0]
    shared = unpacked(DIGITS.read_bytes()).subgraphs[0].tensors[0]
    shared.name = "n" * 20000
    main.tensors.extend([_PackedOnce(shared)] * 20000)
    data = packed(model)
    assert len(data) < 300_000
    start = time.process_time()
    with pytest.raises(InputError, match="overlap one another"):
        read(data)
    assert time.process_time() - start < SLOWEST_SECONDS


def single(kind: str, change: Callable[[Any, Any], None]) -> bytes:
    """The first sample of a kind that `change(model, main subgraph)` takes, changed."""
    model = unpacked(tflite_bytes(forms()[kind].sample(np.random.default_rng(0))))
    change(model, model.subgraphs[0])
    return packed(model)


@pytest.mark.parametrize(
    ("kind", "field", "value", "what"),
    [
        ("conv2d", "strideH", 32768, "stride"),
        ("conv2d", "dilationWFactor", 70000, "dilation"),
        ("depthwise_conv2d", "strideW", 65535, "stride"),
        ("transpose_conv2d", "strideH", 65535, "stride"),
        ("average_pool2d", "filterWidth", 100_000, "padding"),
        ("max_pool2d.float32", "filterHeight", 100_000, "padding"),
    ],
)
def test_windows_beyond_16_bits_are_refused(kind: str, field: str, value: int, what: str) -> None:
    """LiteRT refuses them; tflite-micro wraps them to other numbers."""

    def change(model: Any, main: Any) -> None:
        options = main.operators[0].builtinOptions
        options.padding = schema.Padding.SAME
        setattr(options, field, value)

    with pytest.raises(UnsupportedError, match=rf"{what} \[.*beyond 32,767"):
        read(single(kind, change))


def reshaping(code: str, options: Any, shape: list[int], axis: int | None = None) -> bytes:
    """EXPAND_DIMS or SQUEEZE of int8[3, 1, 2] to `shape`."""
    model = unpacked(tflite_bytes(forms()["reshape"].sample(np.random.default_rng(0))))
    main = model.subgraphs[0]
    op, (x, y) = main.operators[0], (main.tensors[main.inputs[0]], main.tensors[main.outputs[0]])
    x.shape, y.shape = [3, 1, 2], shape
    op.inputs = [main.inputs[0]]
    op.builtinOptionsType = 0 if options is None else schema.BuiltinOptions.SqueezeOptions
    op.builtinOptions = options
    if axis is not None:
        types: Any = schema
        data, place = types.BufferT(), types.TensorT()
        data.data = np.array([axis], np.int32).view(np.uint8)
        model.buffers.append(data)
        place.name, place.shape, place.type = "axis", [1], types.TensorType.INT32
        place.buffer = len(model.buffers) - 1
        main.tensors.append(place)
        op.inputs.append(len(main.tensors) - 1)
    types_of_op: Any = schema.BuiltinOperator
    code_of = model.operatorCodes[op.opcodeIndex]
    code_of.builtinCode = code_of.deprecatedBuiltinCode = getattr(types_of_op, code)
    return packed(model)


def squeezing(*axes: int) -> Any:
    types: Any = schema
    options = types.SqueezeOptionsT()
    options.squeezeDims = list(axes)
    return options


@pytest.mark.parametrize(
    ("code", "options", "axis", "shape"),
    [
        ("EXPAND_DIMS", None, 0, [1, 3, 1, 2]),
        ("EXPAND_DIMS", None, -1, [3, 1, 2, 1]),
        ("SQUEEZE", squeezing(), None, [3, 2]),
        ("SQUEEZE", squeezing(1), None, [3, 2]),
        ("SQUEEZE", squeezing(-2), None, [3, 2]),
    ],
)
def test_axes_put_in_or_left_out_make_the_shape(
    code: str, options: Any, axis: int | None, shape: list[int]
) -> None:
    assert read(reshaping(code, options, shape, axis)).outputs
    with pytest.raises(InputError, match="but its inputs make it"):
        read(reshaping(code, options, shape[::-1], axis))


def test_axes_that_are_not_1_are_not_left_out() -> None:
    with pytest.raises(InputError, match=r"SQUEEZE .*: cannot select an axis"):
        read(reshaping("SQUEEZE", squeezing(0), [1, 2]))
