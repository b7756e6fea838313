"""Who judges a TFLite file: the table, and models whose operators have different judges."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest

from tests.pure.test_ops_litert import random_value
from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import InputError
from toolchain.frontends import load_model
from toolchain.frontends.tflite.file import read_file
from toolchain.frontends.tflite.versions import LAST
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.detection.detection_postprocess import CUSTOM
from toolchain.ops.hybrid.dense import HybridDense
from toolchain.ops.interpret import interpret
from toolchain.ops.movement.tile import Tile
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.unary.relu import Bounds, Relu
from toolchain.reference import TfliteReference, child, open_reference
from toolchain.reference.judges import RULES, SIGNAL, Rule
from toolchain.reference.process import RefusedError, Runtime, RuntimeProcess, open_model

needs_micro = pytest.mark.skipif(
    importlib.util.find_spec("tflite_micro") is None,
    reason="needs tflite-micro, which Python 3.12 has no wheel of",
)
Q = Quantisation((0.05,), (-3,))


def _edited(data: bytes, edit: Callable[[schema.ModelT], None]) -> bytes:
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data))
    edit(model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def tile_file(version: int) -> bytes:
    x, y = Tensor("x", (2, 3), DType.INT8, Q), Tensor("y", (4, 3), DType.INT8, Q)
    op = Op("tile", "t", ("x",), ("y",), Tile((2, 1)))

    def edit(model: schema.ModelT) -> None:
        model.operatorCodes[0].version = version

    return _edited(tflite_bytes(Graph.build("t", [x, y], [op], ["x"], ["y"])), edit)


def _chain() -> Graph:
    """Relu, sum, relu: the sum between is another runtime's than its neighbours."""
    tensors = [
        Tensor("x", (4, 6), DType.INT8, Q),
        Tensor("r", (4, 6), DType.INT8, Q),
        Tensor("s", (4,), DType.INT8, Quantisation((0.2,), (5,))),
        Tensor("y", (4,), DType.INT8, Quantisation((0.2,), (5,))),
    ]
    ops = [
        Op("relu", "a", ("x",), ("r",), Relu(Bounds.RELU6)),
        Op("sum", "b", ("r",), ("s",), Reduce((1,))),
        Op("relu", "c", ("s",), ("y",), Relu(Bounds.RELU6)),
    ]
    return Graph.build("chain", tensors, ops, ["x"], ["y"])


def _write(folder: Path, data: bytes) -> Path:
    file = folder / "model.tflite"
    file.write_bytes(data)
    return file


WRONG = [
    rule
    for rule in RULES
    if rule.judges
    and rule.judges[0] is not Runtime.LITERT_REFERENCE
    and "SVDF" not in rule.codes  # reads beyond
]
LEAST_WEIGHTS = [rule for rule in RULES if rule.least_weights]


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.codes[0])
def test_litert_is_still_wrong_where_the_table_says_so(rule: Rule) -> None:
    """Else the row can go."""
    process, rng, tried = RuntimeProcess(), np.random.default_rng(1), 0
    for kind, spec in forms().items():
        for _ in range(3):
            if spec.tflite is None or not set(rule.codes) & set(spec.tflite.builtins):
                continue
            graph = spec.sample(rng)
            data = tflite_bytes(graph)

            def newest(model: schema.ModelT) -> None:
                (code,) = model.operatorCodes
                code.version = max(code.version, rule.since_version or 1)

            data = _edited(data, newest)
            model = read_file(data)
            if not rule.takes(model.ops[0], model):
                continue
            tried += 1
            values = [random_value(graph.tensors[name], rng) for name in graph.inputs]
            try:
                found = open_model(process, Runtime.LITERT_REFERENCE, data).run(values)
            except (RefusedError, InputError):
                continue
            same = map(np.array_equal, found, interpret(graph, values))
            assert not all(same), f"{kind}: {rule.why}?"
    assert tried, rule


@pytest.mark.skipif(not LEAST_WEIGHTS, reason="LiteRT is right on this processor")
def test_weights_of_minus_128_beside_floats_have_no_judge_on_x86(tmp_path: Path) -> None:
    """LiteRT's sums are those of weights that it takes for 128 where the input is negative."""
    weights = np.full((3, 32), -128, np.int8)
    tensors = [
        Tensor("x", (1, 32), DType.FLOAT32),
        Tensor("w", (3, 32), DType.INT8, Quantisation((0.01,), (0,)), weights),
        Tensor("y", (1, 3), DType.FLOAT32),
    ]
    op = Op("fully_connected", "f", ("x", "w"), ("y",), HybridDense())
    data = tflite_bytes(Graph.build("f", tensors, [op], ["x"], ["y"]))
    graph = load_model(_write(tmp_path, data))
    x = -np.ones((1, 32), np.float32)
    (ours,) = interpret(graph, [x])
    np.testing.assert_allclose(ours, 0.01 * 128 * 32, rtol=1e-3)
    (theirs,) = open_model(RuntimeProcess(), Runtime.LITERT_REFERENCE, data).run([x])
    assert (theirs < 0).all()
    reference = open_reference(tmp_path / "model.tflite")
    assert "_mm_sign_epi8" in reference.not_independent


def test_data_behind_the_flatbuffer_reach_the_parts_of_a_file(tmp_path: Path) -> None:
    """A maximum with a constant whose bytes lie behind, and a sum, which another runtime judges."""
    c = np.random.default_rng(2).integers(-128, 128, (4, 6)).astype(np.int8)
    tensors = [
        Tensor("x", (4, 6), DType.INT8, Q),
        Tensor("c", (4, 6), DType.INT8, Q, c),
        Tensor("m", (4, 6), DType.INT8, Q),
        Tensor("y", (4,), DType.INT8, Quantisation((0.2,), (5,))),
    ]
    ops = [
        Op("maximum", "a", ("x", "c"), ("m",), Attributes()),
        Op("sum", "b", ("m",), ("y",), Reduce((1,))),
    ]
    graph = Graph.build("behind", tensors, ops, ["x"], ["y"])
    plain = tflite_bytes(graph)

    def outside(offset: int) -> bytes:
        def edit(model: schema.ModelT) -> None:
            for buffer in model.buffers:
                if buffer.data is not None and bytes(buffer.data) == c.tobytes():
                    buffer.data, buffer.offset, buffer.size = None, offset, c.size

        return _edited(plain, edit)

    data = outside(len(outside(2))) + c.tobytes()
    x = np.random.default_rng(3).integers(-128, 128, (4, 6)).astype(np.int8)
    reference = open_reference(_write(tmp_path, data))
    assert isinstance(reference, TfliteReference) and len(reference.steps) == 2
    found, ours = reference.run([x])[0].astype(int), interpret(graph, [x])[0].astype(int)
    assert np.abs(found - ours).max() <= reference.tolerance


@pytest.mark.parametrize("version", [2, 3])
def test_tile_is_judged_at_any_version(version: int, tmp_path: Path) -> None:
    reference = open_reference(_write(tmp_path, tile_file(version)))
    assert not reference.not_independent
    assert ("default" in reference.name) == (version > 2)
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    np.testing.assert_array_equal(reference.run([x])[0], np.tile(x, (2, 1)))


@pytest.mark.parametrize("version", [99, 2**31 - 1, 0, -5])
def test_a_version_that_nothing_knows_is_refused(version: int, tmp_path: Path) -> None:
    message = rf"TILE \(operator 0\) has version {version}; the versions known are 1 to 3"
    with pytest.raises(InputError, match=message):
        open_reference(_write(tmp_path, tile_file(version)))


@pytest.mark.slow
def test_versions_are_those_that_litert_takes() -> None:
    """Each operator's last version is one that a resolver finds, and the next is not.

    Operators that are not listed are found in no version.
    """
    plain = tflite_bytes(_chain())
    process = RuntimeProcess()

    def found(code: str, version: int, resolver: Runtime) -> bool:
        def another(model: schema.ModelT) -> None:
            number = getattr(schema.BuiltinOperator, code)
            added = schema.OperatorCodeT()
            added.builtinCode, added.deprecatedBuiltinCode = number, min(number, 127)
            added.version = version
            model.operatorCodes.append(added)

        try:
            open_model(process, resolver, _edited(plain, another))
        except RefusedError as error:
            assert "Didn't find op for builtin opcode" in str(error)
            return False
        return True

    resolvers = (Runtime.LITERT_REFERENCE, Runtime.LITERT_DEFAULT)
    for code, last in LAST.items():
        assert any(found(code, last, resolver) for resolver in resolvers), code
        assert not any(found(code, last + 1, resolver) for resolver in resolvers), code
    others = {code for code in vars(schema.BuiltinOperator) if code.isupper()} - {"CUSTOM", *LAST}
    for code in sorted(others):
        assert not any(found(code, 1, resolver) for resolver in resolvers), f"{code} is not listed"
    read = {code for spec in forms().values() if spec.tflite for code in spec.tflite.builtins}
    assert read - {*SIGNAL, CUSTOM} <= set(LAST)


@pytest.mark.parametrize("key", [None, b"\xff"], ids=["no key", "no text"])
def test_a_broken_signature_does_not_keep_a_file_from_its_judge(
    key: bytes | None, tmp_path: Path
) -> None:
    graph = forms()["relu"].sample(np.random.default_rng(0))

    def signed(model: schema.ModelT) -> None:
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = key, 7
        model.signatureDefs = [signature]

    data = _edited(tflite_bytes(graph), signed)
    with pytest.raises(RefusedError):
        open_model(RuntimeProcess(), Runtime.LITERT_REFERENCE, data)
    reference = open_reference(_write(tmp_path, data))
    assert not reference.not_independent
    (judge,) = reference.judges
    assert judge.runtime == Runtime.LITERT_REFERENCE.title
    assert "of a copy of its operators, since it refuses the file" in judge.why
    values = [random_value(graph.tensors[name], np.random.default_rng(1)) for name in graph.inputs]
    np.testing.assert_array_equal(reference.run(values)[0], interpret(graph, values)[0])


@needs_micro
def test_operators_are_shared_out_and_their_judges_named(tmp_path: Path) -> None:
    graph = _chain()
    reference = open_reference(_write(tmp_path, tflite_bytes(graph)))
    assert reference.name == "LiteRT's reference kernels; SUM by tflite-micro"
    assert {j.runtime: j.operators for j in reference.judges} == {
        "LiteRT's reference kernels": ("RELU6", "RELU6"),
        "tflite-micro": ("SUM",),
    }
    assert "uint8" in next(j.why for j in reference.judges if j.runtime == "tflite-micro")
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.integers(-128, 128, (4, 6)).astype(np.int8)
        np.testing.assert_array_equal(reference.run([x])[0], interpret(graph, [x])[0])


def test_without_tflite_micro_litert_s_default_kernel_judges_within_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "tflite_micro"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ImportError('hidden')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    graph = _chain()
    reference = open_reference(_write(tmp_path, tflite_bytes(graph)))
    assert reference.name == "LiteRT's reference kernels; SUM by LiteRT's default kernels"
    assert reference.tolerance == 1
    assert any("tflite-micro: not installed" in judge.why for judge in reference.judges)
    x = np.random.default_rng(0).integers(-128, 128, (4, 6)).astype(np.int8)
    found, ours = reference.run([x])[0].astype(int), interpret(graph, [x])[0].astype(int)
    assert np.abs(found - ours).max() <= 1


def test_a_code_that_a_judge_lacks_stays_out_of_its_part(tmp_path: Path) -> None:
    """LiteRT's reference resolver has no ELU, and judges the RELU before it all the same."""
    tensors = [Tensor(name, (4, 6), DType.INT8, Q) for name in "xry"]
    ops = [
        Op("relu", "a", ("x",), ("r",), Relu(Bounds.RELU6)),
        Op("elu", "b", ("r",), ("y",)),
    ]
    graph = Graph.build("elu", tensors, ops, ["x"], ["y"])
    reference = open_reference(_write(tmp_path, tflite_bytes(graph)))
    assert {j.runtime: j.operators for j in reference.judges} == {
        "LiteRT's reference kernels": ("RELU6",),
        "LiteRT's default kernels": ("ELU",),
    }
    assert not any("refuse" in judge.why for judge in reference.judges)


def test_states_stay_with_the_operator_that_keeps_them(tmp_path: Path) -> None:
    """An SVDF beside operators of other judges, over several runs."""
    rng = np.random.default_rng(3)
    graph = next(g for g in (forms()["svdf"].sample(rng) for _ in range(50)) if g.ops[0].inputs[3])
    y = graph.output(graph.ops[0])
    total = Tensor("total", y.shape[:1], DType.INT8, Quantisation((1.0,), (0,)))
    tensors = [*graph.tensors.values(), total]
    ops = [*graph.ops, Op("sum", "t", (y.name,), ("total",), Reduce((1,)))]
    mixed = replace(
        graph, tensors={t.name: t for t in tensors}, ops=tuple(ops), outputs=("total", y.name)
    )
    file = _write(tmp_path, tflite_bytes(mixed))
    reference = open_reference(file)
    assert isinstance(reference, TfliteReference)
    assert len(reference.steps) == 2
    again = load_model(file)
    for _ in range(2):
        states: dict[str, np.ndarray] = {}
        for _ in range(4):
            x = rng.integers(-128, 128, graph.tensors[graph.inputs[0]].shape).astype(np.int8)
            for found, ours in zip(reference.run([x]), interpret(again, [x], states), strict=True):
                assert np.abs(found.astype(int) - ours.astype(int)).max() <= reference.tolerance
        reference.restart()


def test_names_that_are_not_text_are_no_hindrance(tmp_path: Path) -> None:
    data = tflite_bytes(_chain())
    spoiled = data.replace(b"\x01\x00\x00\x00x\x00", b"\x01\x00\x00\x00\x81\x00")
    assert spoiled != data
    reference = open_reference(_write(tmp_path, spoiled))
    x = np.zeros((4, 6), np.int8)
    np.testing.assert_array_equal(reference.run([x])[0], interpret(_chain(), [x])[0])


CRASHING = """
import os, sys
sys.path.insert(0, {folder!r})
import child
def answer(opened, message, parts):
    {what}
child.serve(sys.stdin.buffer, sys.stdout.buffer, answer)
"""


@pytest.mark.parametrize(
    ("what", "limit_seconds", "said"),
    [
        ("os.abort()", 600, "crashed on this file"),
        ("os._exit(0)", 600, "crashed on this file"),
        ("import signal; signal.pause()", 0.5, r"did not end within 0\.5 s"),
    ],
)
def test_a_crash_is_a_sentence(
    what: str, limit_seconds: float, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process that really dies, or hangs without end."""
    folder = Path(child.__file__).parent
    file = tmp_path / "crashing.py"
    file.write_text(CRASHING.format(folder=str(folder), what=what))
    monkeypatch.setattr(child, "__file__", str(file))
    process = RuntimeProcess(limit_seconds)
    with pytest.raises(InputError, match=said):
        open_model(process, Runtime.TFLITE_MICRO, b"")


@needs_micro
def test_a_real_crash_of_tflite_micro_is_survived() -> None:
    """An SVDF without a bias, which it reads all the same."""
    rng = np.random.default_rng(5)
    graph = next(
        g for g in (forms()["svdf.int8"].sample(rng) for _ in range(50)) if not g.ops[0].inputs[3]
    )
    x = np.zeros(graph.tensors["x"].shape, np.int8)
    with pytest.raises(InputError, match="tflite-micro crashed on this file"):
        open_model(RuntimeProcess(), Runtime.TFLITE_MICRO, tflite_bytes(graph), 1).run([x])
