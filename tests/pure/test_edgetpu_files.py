"""TFLite files in, stages out: bytes equal, parts carried, bad files refused with one error."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from tests.support.edgetpu import random_inputs, reference_interpreter, run_chain, run_whole
from tests.support.mutations import damaged_bytes, damaged_fields, packed, unpacked
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.run.split import Segment, split_file
from toolchain.errors import InputError, ResultError

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
Change = Callable[[Any, Any], None]


def changed(tmp_path: Path, change: Change) -> Path:
    """The digits model after `change(model, main subgraph)`."""
    model = unpacked(DIGITS.read_bytes())
    change(model, model.subgraphs[0])
    path = tmp_path / "changed.tflite"
    path.write_bytes(packed(model))
    return path


def segments_of(path: Path, stages: int, objective: str = "params,comm") -> tuple[Segment, ...]:
    graph = read_graph(path)
    found = plan([graph], stages, Options(objective))
    return split_file(path.read_bytes(), graph, found.stage_of[0], stages)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("objective", ["period", "params,spill,comm", "contiguous"])
def test_stages_compute_what_the_whole_computes(stages: int, objective: str) -> None:
    segments = segments_of(DIGITS, stages, objective)
    whole = reference_interpreter(DIGITS.read_bytes())
    chain = [reference_interpreter(segment.data) for segment in segments]
    rng = np.random.default_rng(stages)
    for _ in range(5):
        values = random_inputs(whole, rng)
        for ours, theirs in zip(
            run_chain(chain, segments, values), run_whole(whole, values), strict=True
        ):
            assert np.array_equal(ours, theirs)


def remembers(model: Any, main: Any) -> None:
    """The outputs of operators 0 and 2 become their largest values so far, kept in variables."""
    kinds, options = schema.BuiltinOperator, schema.BuiltinOptions
    codes: dict[int, int] = {}

    def tensor(graph: Any, like: Any, **fields: Any) -> int:
        made = schema.TensorT()
        vars(made).update({**vars(like), "buffer": 0, **fields})
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    def op(kind: int, inputs: list[int], outputs: list[int], form: int = 0, value: Any = None):
        if kind not in codes:
            code = schema.OperatorCodeT()
            code.builtinCode, code.deprecatedBuiltinCode, code.version = kind, min(kind, 127), 1
            codes[kind] = len(model.operatorCodes)
            model.operatorCodes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = codes[kind], inputs, outputs
        made.builtinOptionsType, made.builtinOptions = form, value
        return made

    def handle(graph: Any, name: str) -> tuple[Any, int]:
        value = schema.VarHandleOptionsT()
        value.container, value.sharedName = b"", name.encode()
        blank = schema.TensorT()
        blank.type, blank.shape, blank.name = schema.TensorType.RESOURCE, [], name.encode()
        graph.tensors.append(blank)
        index = len(graph.tensors) - 1
        return op(kinds.VAR_HANDLE, [], [index], options.VarHandleOptions, value), index

    first = schema.SubGraphT()
    first.tensors, first.operators, first.inputs, first.outputs = [], [], [], []
    ahead: list[Any] = []
    behind: dict[int, list[Any]] = {}
    for number in (0, 2):
        written = int(main.operators[number].outputs[0])
        like = main.tensors[written]
        made, kept = handle(main, f"kept{number}")
        ahead.append(made)
        old = tensor(main, like, name=b"old%d" % number)
        new = tensor(main, like, name=b"new%d" % number)
        for user in main.operators[number + 1 :]:
            user.inputs = [new if int(t) == written else int(t) for t in user.inputs]
        most = schema.MaximumMinimumOptionsT()
        behind[number] = [
            op(kinds.READ_VARIABLE, [kept], [old]),
            op(kinds.MAXIMUM, [written, old], [new], options.MaximumMinimumOptions, most),
            op(kinds.ASSIGN_VARIABLE, [kept, new], []),
        ]
        zeros = schema.BufferT()
        zeros.data = np.zeros(int(np.prod(like.shape)), np.uint8)
        model.buffers.append(zeros)
        made, again = handle(first, f"kept{number}")
        value = tensor(first, like, name=b"zero%d" % number, buffer=len(model.buffers) - 1)
        first.operators += [made, op(kinds.ASSIGN_VARIABLE, [again, value], [])]
    call = schema.CallOnceOptionsT()
    call.initSubgraphIndex = 1
    ahead.insert(0, op(kinds.CALL_ONCE, [], [], options.CallOnceOptions, call))
    body = [o for n, own in enumerate(main.operators) for o in (own, *behind.get(n, ()))]
    main.operators = ahead + body
    model.subgraphs.append(first)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_stages_keep_variables(tmp_path: Path, stages: int) -> None:
    path = changed(tmp_path, remembers)
    graph = read_graph(path)
    segments = segments_of(path, stages)
    whole = reference_interpreter(path.read_bytes())
    plain = reference_interpreter(DIGITS.read_bytes())
    chain = [reference_interpreter(segment.data) for segment in segments]
    rng = np.random.default_rng(stages)
    matters = False
    for _ in range(6):
        values = random_inputs(whole, rng)
        expected = run_whole(whole, values)
        matters |= not np.array_equal(expected[0], run_whole(plain, values)[0])
        for ours, theirs in zip(run_chain(chain, segments, values), expected, strict=True):
            assert np.array_equal(ours, theirs)
    assert matters
    assert sum(len(op.states) for op in graph.ops) == 6
    held = [unpacked(segment.data) for segment in segments]
    kept = [sum(b"kept" in (t.name or b"") for t in m.subgraphs[0].tensors) for m in held]
    assert sum(kept) == 2  # each variable in one stage, and initialised there
    assert [len(m.subgraphs) for m in held] == [2 if count else 1 for count in kept]


@pytest.mark.parametrize("number", [9, 0, -1])
def test_variables_that_nothing_initialises(tmp_path: Path, number: int) -> None:
    def change(model: Any, main: Any) -> None:
        remembers(model, main)
        main.operators[0].builtinOptions.initSubgraphIndex = number

    with pytest.raises(InputError, match=f"calls subgraph {number}"):
        read_graph(changed(tmp_path, change))


def test_what_a_stage_carries(tmp_path: Path) -> None:
    def add_parts(model: Any, main: Any) -> None:
        note = schema.BufferT()
        note.data = np.frombuffer(b"a note", np.uint8)
        model.buffers.append(note)
        entry = schema.MetadataT()
        entry.name, entry.buffer = b"note", len(model.buffers) - 1
        model.metadata = [entry]
        unused = schema.BufferT()
        unused.data = np.zeros(5000, np.uint8)
        model.buffers.append(unused)
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = b"serve", 0
        signature.inputs, signature.outputs = [], []
        for ends, maps, name in (
            (main.inputs, signature.inputs, b"image"),
            (main.outputs, signature.outputs, b"scores"),
        ):
            made = schema.TensorMapT()
            made.name, made.tensorIndex = name, int(ends[0])
            maps.append(made)
        model.signatureDefs = [signature]

    path = changed(tmp_path, add_parts)
    source = unpacked(path.read_bytes())
    segments = segments_of(path, 3)
    operators = 0
    for number, segment in enumerate(segments):
        part = unpacked(segment.data)
        main = part.subgraphs[0]
        operators += len(main.operators)
        assert part.description == source.description
        assert [bytes(part.buffers[m.buffer].data) for m in part.metadata] == [b"a note"]
        assert max(0 if b.data is None else len(b.data) for b in part.buffers) != 5000
        codes = {op.opcodeIndex for op in main.operators}
        assert codes == set(range(len(part.operatorCodes)))
        used = {t.buffer for t in main.tensors} | {m.buffer for m in part.metadata} | {0}
        assert used == set(range(len(part.buffers)))
        signature = part.signatureDefs[0]
        assert signature.signatureKey == b"serve"
        assert [m.tensorIndex for m in signature.inputs] == list(main.inputs)
        assert (b"image" in [m.name for m in signature.inputs]) == (number == 0)
        assert (b"scores" in [m.name for m in signature.outputs]) == (number == 2)
        runner = reference_interpreter(segment.data).get_signature_runner("serve")
        assert set(runner.get_input_details()) == {m.name.decode() for m in signature.inputs}
        named = {t.name: t for t in source.subgraphs[0].tensors}
        for tensor in main.tensors:
            original = named[tensor.name]
            if original.quantization is not None and original.quantization.scale is not None:
                assert list(tensor.quantization.scale) == list(original.quantization.scale)
                assert list(tensor.quantization.zeroPoint) == list(original.quantization.zeroPoint)
    assert operators == len(source.subgraphs[0].operators)


def test_constants_lie_on_16_bytes() -> None:
    for segment in segments_of(DIGITS, 2):
        model = schema.Model.GetRootAs(segment.data, 0)
        for index in range(model.BuffersLength()):
            if model.Buffers(index).DataLength():
                vector = model.Buffers(index)._tab
                at = vector.Vector(vector.Offset(4))
                assert at % 16 == 0


def test_tensors_of_one_name_are_told_apart(tmp_path: Path) -> None:
    def one_name(model: Any, main: Any) -> None:
        for tensor in main.tensors:
            tensor.name = b"x"

    path = changed(tmp_path, one_name)
    segments = segments_of(path, 3)
    for before, after in itertools.pairwise(segments):
        assert len(set(before.outputs)) == len(before.outputs)
        assert set(after.inputs) <= {name for s in segments for name in s.outputs}
    values = random_inputs(reference_interpreter(path.read_bytes()), np.random.default_rng(1))
    whole = run_whole(reference_interpreter(path.read_bytes()), values)
    chain = [reference_interpreter(segment.data) for segment in segments]
    assert np.array_equal(run_chain(chain, segments, values)[0], whole[0])


def _float(model: Any, main: Any) -> None:
    for tensor in main.tensors:
        if tensor.type == schema.TensorType.INT8:
            tensor.type = schema.TensorType.FLOAT32
            tensor.quantization = None
            buffer = model.buffers[tensor.buffer]
            buffer.data = None if buffer.data is None else np.repeat(buffer.data, 4)


def _compiled(model: Any, main: Any) -> None:
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
    code.customCode = b"edgetpu-custom-op"
    model.operatorCodes = [code]
    main.operators = main.operators[:1]
    main.operators[0].opcodeIndex = 0
    main.operators[0].builtinOptionsType = 0
    main.operators[0].builtinOptions = None


def _dynamic(model: Any, main: Any) -> None:
    tensor = main.tensors[int(main.inputs[0])]
    tensor.shapeSignature = [1, -1, *list(tensor.shape)[2:]]


def _two_subgraphs(model: Any, main: Any) -> None:
    model.subgraphs.append(main)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_float, "floating point"),
        (_compiled, "already compiled"),
        (_dynamic, "dynamic shape"),
        (_two_subgraphs, "subgraphs"),
    ],
)
def test_models_that_no_stick_runs(tmp_path: Path, change: Change, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_graph(changed(tmp_path, change))


@pytest.mark.slow
def test_damaged_files_are_refused_or_split(tmp_path: Path) -> None:
    rng = random.Random(5)
    data = DIGITS.read_bytes()
    path = tmp_path / "damaged.tflite"
    refused = 0
    for number in range(250):
        damage = damaged_bytes if number % 2 else damaged_fields
        path.write_bytes(damage(data, rng))
        try:
            segments_of(path, 2, "contiguous")
        except (InputError, ResultError) as error:
            assert str(error)
            refused += 1
    assert refused > 50


def summary(**changes: Any) -> dict[str, Any]:
    def tensor(name: str, size: int, is_param: bool = False) -> dict[str, Any]:
        return {"name": name, "shape": [size], "dtype": "int8", "bytes": size, "is_param": is_param}

    content: dict[str, Any] = {
        "name": "two",
        "tensors": [
            tensor("in", 8),
            tensor("w", 16, True),
            tensor("mid", 8),
            tensor("out", 4),
        ],
        "ops": [
            {"type": "A", "inputs": [0, 1, -1], "outputs": [2], "param_bytes": 16, "macs": 10},
            {"type": "B", "inputs": [2, 1], "outputs": [3], "param_bytes": 16, "macs": 20},
        ],
        "inputs": [0],
        "outputs": [3],
    }
    return {**content, **changes}


def test_summaries_are_read(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    path.write_text(json.dumps(summary()))
    graph = read_graph(path)
    assert graph.param_bytes == 16
    found = plan([graph], 2, Options("params,comm"))
    assert [s.param_bytes for s in found.figures[0]] == [16, 16]  # shared: once a stage
    assert found.totals.communication_bytes == 8


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        json.dumps(summary(outputs=[7])),
        json.dumps(summary(outputs=[0])),
        json.dumps(summary(ops=[])),
        json.dumps(summary(ops=list(reversed(summary()["ops"])))),
        json.dumps(summary(tensors=[{"name": "x", "bytes": -1, "is_param": False}])),
        json.dumps(summary(inputs=5)),
    ],
)
def test_bad_summaries_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(InputError):
        read_graph(path)
