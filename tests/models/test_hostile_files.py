"""Every array, JSON and CSV file that once ended in a traceback, through the command that takes it.

The models among them have tests of their own; `thimble verify` on those that once broke it is here.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from toolchain.cli import run
from toolchain.deployment.compile import compile_model

HOSTILE = Path(__file__).resolve().parents[2].parent / "shared" / "hostile"
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
SECONDS = 60.0

pytestmark = pytest.mark.skipif(not HOSTILE.is_dir(), reason=f"no files at {HOSTILE}")


def _files(*patterns: str) -> list[Path]:
    return sorted(file for pattern in patterns for file in HOSTILE.glob(pattern))


def _named(file: Path) -> str:
    return file.name


def _ends(command: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code, and what was said; in bounded time, without a traceback."""
    begin = time.process_time()
    code = run(command)
    assert time.process_time() - begin < SECONDS
    said = capfd.readouterr()
    assert "Traceback" not in said.out + said.err
    return code, said.err.strip()


def _one_refusal(command: list[str], file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said = _ends(command, capfd)
    assert code == 2, said
    assert said.startswith("error: ") and len(said.splitlines()) == 1, said
    assert file.name in said


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "out"
    compile_model(DIGITS, "host", folder)
    return folder


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "stages"
    assert run(["edgetpu", "split", str(DIGITS), "--stages", "2", "-o", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("file", _files("*.npy", "*.npz"), ids=_named)
def test_arrays_are_refused_wherever_they_are_given(
    file: Path, compiled: Path, pipeline: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    for command in (
        ["run", str(compiled), "--input", str(file)],
        ["verify", str(DIGITS), "--board", "host", "--runs", "0", "--input", str(file)],
        ["edgetpu", "run", str(pipeline), "--backend", "cpu", "--input", str(file)],
    ):
        _one_refusal(command, file, capfd)


@pytest.mark.parametrize("file", _files("*.npy", "*.npz"), ids=_named)
def test_arrays_are_refused_by_quantize(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import onnx
    from onnx import TensorProto, helper

    source = tmp_path / "float.onnx"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(source))
    target = str(tmp_path / "int8.onnx")
    _one_refusal(["quantize", str(source), "--data", str(file), "-o", target], file, capfd)


def test_no_memory_is_taken_for_what_a_header_claims(compiled: Path) -> None:
    """A terabyte that 128 bytes claim: refused with two gigabytes of address space."""
    code = (
        "import resource, sys; from toolchain.cli import run; "
        f"resource.setrlimit(resource.RLIMIT_AS, ({2 << 30}, {2 << 30})); "
        "sys.exit(run(sys.argv[1:]))"
    )
    command = ["run", str(compiled), "--input", str(HOSTILE / "h1t.npy")]
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "says that it holds 1,099,511,627,776 bytes" in done.stderr


@pytest.mark.parametrize("file", _files("*.json"), ids=_named)
@pytest.mark.parametrize(
    "command",
    [
        ["cost", "import", "{}"],
        ["schedule", "{}"],
        ["edgetpu", "plan", "{}", "--stages", "2"],
        ["edgetpu", "plan", str(DIGITS), "--stages", "2", "--profile", "{}"],
        ["plan", "{}"],
        ["verify", "{}", "--board", "host"],
    ],
    ids=lambda command: " ".join(word for word in command[:2] if "/" not in word),
)
def test_json_is_refused_wherever_it_is_given(
    command: list[str], file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [str(file) if word == "{}" else word for word in command]
    code, said = _ends(given, capfd)
    assert code == 2, said
    assert said.startswith("error: ") and len(said.splitlines()) == 1, said


@pytest.mark.parametrize("file", _files("*.csv"), ids=_named)
@pytest.mark.parametrize("limit", ["0", "1"])
def test_buffers_are_placed_within_the_limit(
    file: Path, limit: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    offsets = str(tmp_path / "offsets.csv")
    begin = time.process_time()
    code, _ = _ends(["arena", str(file), "--time-limit", limit, "-o", offsets], capfd)
    assert code == 0
    assert time.process_time() - begin < float(limit) + 3.0, "with start-up, checking, writing"
    assert _ends(["arena", offsets, "--check"], capfd)[0] == 0


_SOUND = ("clean_op_sum_s16_0", "clean_op_sum_s16_1")


@pytest.mark.parametrize(
    "file",
    _files(
        *(f"{name}.tflite" for name in _SOUND),
        *(f"verify_op_{kind}_[0-9]_*.tflite" for kind in ("arg_max", "pack", "pad")),
        *(f"verify_op_{kind}_[0-9]_*.tflite" for kind in ("space_to_batch", "sum", "unpack")),
    ),
    ids=_named,
)
def test_verify_ends_in_right_numbers_or_one_refusal(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, said = _ends(["verify", str(file), "--board", "host", "--runs", "3"], capfd)
    assert code in ((0,) if file.stem in _SOUND else (0, 2)), said
    if code:
        assert said.startswith("error: ")


def test_arrays_of_the_right_kind_are_taken(
    compiled: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Else the tests above would see nothing but refusals."""
    from toolchain.deployment.folder import compiled_model

    (end,) = compiled_model(compiled).inputs
    np.save(tmp_path / "a.npy", np.zeros(end.model_shape, end.model_dtype.numpy))
    code, said = _ends(["run", str(compiled), "--input", str(tmp_path / "a.npy")], capfd)
    assert code == 0, said
