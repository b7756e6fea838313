"""edgetpu_compiler: its reports in every form that its versions print, and its failures.

The samples have the form of reports that users published (google-coral/edgetpu issues 427 and 671:
one model; 458: several; 444, 211, 313, 411, 686, 800, 829: failures; 651 and 671: a search); names
and figures are our own. The stand-in for the program prints these; its exit codes are 0 where it
compiled (libcoral 6589d0b, coral/tools/partitioner/profiling_based_partitioner.cc:46) and either
where it did not, which nobody published.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from toolchain.cli import run as command
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.run import compiler
from toolchain.edgetpu.run.folder import PipelineFolder
from toolchain.errors import MissingToolError, ResultError

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
MIB = 1 << 20

NEWEST = """Edge TPU Compiler version 16.0.384591198
Started a compilation timeout timer of 180 seconds.

Model compiled successfully in 941 ms.

Input model: part_stage_0_of_2.tflite
Input size: 3.03MiB
Output model: part_stage_0_of_2_edgetpu.tflite
Output size: 3.35MiB
On-chip memory used for caching model parameters: 2.81MiB
On-chip memory remaining for caching model parameters: 4.84MiB
Off-chip memory used for streaming uncached model parameters: 512.00B
Number of Edge TPU subgraphs: 1
Total number of operations: 31
Operation log: part_stage_0_of_2_edgetpu.log

Model successfully compiled but not all operations are supported by the Edge TPU. A percentage of \
the model will instead run on the CPU, which is slower.
Number of operations that will run on Edge TPU: 30
Number of operations that will run on CPU: 1

Operator                       Count      Status

CONV_2D                        28         Mapped to Edge TPU
ADD                            2          Mapped to Edge TPU
DEQUANTIZE                     1          Operation is working on an unsupported data type
Compilation child process completed within timeout period.
Compilation succeeded!
"""
TOGETHER = """Edge TPU Compiler version 16.0.384591198
Started a compilation timeout timer of 180 seconds.

Models compiled successfully in 524 ms.

Input model: a_stage_0_of_2.tflite
Input size: 1.91MiB
Output model: out/a_stage_0_of_2_edgetpu.tflite
Output size: 2.52MiB
On-chip memory used for caching model parameters: 2.25MiB
On-chip memory remaining for caching model parameters: 1.00MiB
Off-chip memory used for streaming uncached model parameters: 0.00B
Number of Edge TPU subgraphs: 1
Total number of operations: 57
Operation log: out/a_stage_0_of_2_edgetpu.log
See the operation log file for individual operation details.

Input model: b_stage_0_of_2.tflite
Input size: 1.87MiB
Output model: out/b_stage_0_of_2_edgetpu.tflite
Output size: 2.06MiB
On-chip memory used for caching model parameters: 4.00MiB
On-chip memory remaining for caching model parameters: 1.00MiB
Off-chip memory used for streaming uncached model parameters: 41.75KiB
Number of Edge TPU subgraphs: 1
Total number of operations: 6
Operation log: out/b_stage_0_of_2_edgetpu.log
See the operation log file for individual operation details.
Compilation child process completed within timeout period.
Compilation succeeded!
"""
OLDEST = """Edge TPU Compiler version 2.0.291256449

Model compiled successfully in 2356 ms.

Input model: part.tflite
Input size: 25.08MiB
Output model: part_edgetpu.tflite
Output size: 24.87MiB
On-chip memory available for caching model parameters: 6.25MiB
On-chip memory used for caching model parameters: 6.00MiB
Off-chip memory used for streaming uncached model parameters: 18.43MiB
Number of Edge TPU subgraphs: 1
Total number of operations: 77
Operation log: part_edgetpu.log
Number of operations that will run on Edge TPU: 70
Number of operations that will run on CPU: 7
See the operation log file for individual operation details.
"""
SHORTENED = NEWEST.replace(
    """CONV_2D                        28         Mapped to Edge TPU
ADD                            2          Mapped to Edge TPU
""",
    "",
).replace(
    "data type\nCompilation child",
    "data type\n... All other operators were mapped successfully. See part.log.\nCompilation child",
)
TOO_LARGE = """Edge TPU Compiler version 16.0.384591198
Started a compilation timeout timer of 180 seconds.
ERROR: Restored original execution plan after delegate application failure.
Compilation failed: Compilation failed due to large activation tensors in model.
Compilation child process completed within timeout period.
Compilation failed!\x20
"""
START = """Edge TPU Compiler version 16.0.384591198
Started a compilation timeout timer of 180 seconds.
"""
END = "Compilation child process completed within timeout period.\nCompilation failed!\x20\n"
UNQUANTISED = """Edge TPU Compiler version 15.0.340273435
Invalid model: part.tflite
Model not quantized
"""
UNKNOWN_OPERATOR = f"""{START}ERROR: Encountered unresolved custom op: Atan.
ERROR: Node number 1 (Atan) failed to prepare.

Compilation failed: Model failed in Tflite interpreter. Please ensure model can be loaded/run in \
Tflite interpreter.
{END}"""
SLOW = f"""{START}Compilation timeout. This is usually caused by large activations.
Compilation failed!\x20
"""
SILENT = START + END
MUTE = "Edge TPU Compiler version 15.0.340273435\n"
SEARCHED = f"""Edge TPU Compiler version 16.0.384591198
Searching for valid delegate with step 3
Try to compile segment with 31 ops
{TOO_LARGE.partition("16.0.384591198")[2].lstrip()}Try to compile segment with 28 ops
Intermediate tensors: Reshape_2,Relu6_12;box-0-bn-7/FusedBatchNormV3,Reshape_4
{NEWEST.partition("16.0.384591198")[2].lstrip()}"""
INTERNAL = "Edge TPU Compiler version 14.1.317412892\n\nInternal compiler error. Aborting!\x20\n"


def test_the_compilers_report_is_read() -> None:
    told = compiler.parse_report(NEWEST)
    assert told.on_chip_bytes == round(2.81 * MIB)
    assert told.off_chip_bytes == 512
    assert sum(line.count for line in told.operators) == 31
    assert [(line.kind, line.count) for line in told.on_processor] == [("DEQUANTIZE", 1)]
    assert told.processor_operations == 1
    assert len(compiler.parse_reports(NEWEST)) == 1


def test_a_shortened_table_is_read() -> None:
    told = compiler.parse_report(SHORTENED)
    assert [line.kind for line in told.operators] == ["DEQUANTIZE"]
    assert told.processor_operations == 1


def test_reports_of_models_compiled_together() -> None:
    first, second = compiler.parse_reports(TOGETHER)
    assert (first.on_chip_bytes, second.on_chip_bytes) == (round(2.25 * MIB), 4 * MIB)
    assert (first.off_chip_bytes, second.off_chip_bytes) == (0, round(41.75 * 1024))


def test_the_report_behind_a_search() -> None:
    (told,) = compiler.parse_reports(SEARCHED)
    assert told.on_chip_bytes == round(2.81 * MIB)
    assert told.processor_operations == 1


def test_the_report_of_version_2_has_no_table() -> None:
    told = compiler.parse_report(OLDEST)
    assert told.on_chip_bytes == 6 * MIB
    assert told.processor_operations == 7
    assert not told.operators


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TOO_LARGE, "says: Compilation failed: Compilation failed due to large activation tensors"),
        (INTERNAL, "Internal compiler error"),
        (UNQUANTISED, "Invalid model: part.tflite Model not quantized"),
        (UNKNOWN_OPERATOR, "unresolved custom op: Atan.; .*Model failed in Tflite interpreter"),
        (SLOW, "Compilation timeout. This is usually caused by large activations"),
        (SILENT, "no reason"),
        (MUTE, "no reason"),
        ("", "no reason"),
    ],
)
def test_the_line_that_says_why_is_told(text: str, reason: str) -> None:
    with pytest.raises(ResultError, match=reason):
        compiler.parse_reports(text)


@pytest.fixture
def folder(tmp_path: Path) -> PipelineFolder:
    found = plan([read_graph(DIGITS)], 3, Options("params"))
    return pipeline.split([DIGITS], found, tmp_path / "stages")


def stand_in(folder: Path, report: str, code: int = 0, writes: bool = True) -> Path:
    """A program with the compiler's documented options and files; it prints a report.

    It writes `NAME_edgetpu.tflite` and `NAME_edgetpu.log` for every model to --out_dir, keeps its
    command line in `calls`, and ends with 64 for an option that is not documented.
    """
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "report.txt").write_text(report)
    script = folder / "bin" / "edgetpu_compiler"
    written = "[pathlib.Path(m) for m in given.models]" if writes else "[]"
    script.write_text(
        f"""#!{sys.executable}
import argparse, json, pathlib, shutil, sys
options = argparse.ArgumentParser(exit_on_error=False)
options.add_argument("-o", "--out_dir", type=pathlib.Path, default=".")
options.add_argument("-s", "--show_operations", action="store_true")
options.add_argument("-d", "--search_delegate", action="store_true")
options.add_argument("-k", "--delegate_search_step", type=int, default=1)
options.add_argument("-n", "--num_segments", type=int, default=1)
options.add_argument("-t", "--timeout_sec", type=int, default=180)
options.add_argument("-m", "--min_runtime_version", type=int)
options.add_argument("models", nargs="+")
try:
    given = options.parse_args()
except (argparse.ArgumentError, SystemExit):
    sys.exit(64)
with open({str(folder / "calls")!r}, "a") as calls:
    print(json.dumps(sys.argv[1:]), file=calls)
found = pathlib.Path({str(folder / "searched.txt")!r})
searched = given.search_delegate and found.exists()
for model in [pathlib.Path(m) for m in given.models] if searched else {written}:
    shutil.copy(model, given.out_dir / (model.stem + "_edgetpu.tflite"))
    (given.out_dir / (model.stem + "_edgetpu.log")).touch()
print((found if searched else pathlib.Path({str(folder / "report.txt")!r})).read_text(), end="")
sys.exit(0 if searched else {code})
"""
    )
    script.chmod(0o755)
    return script.parent


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def test_without_the_compiler(
    folder: PipelineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(MissingToolError, match="edgetpu_compiler is not installed"):
        pipeline.compile_folder(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
def test_the_compiler_is_run_where_it_is_installed(
    folder: PipelineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, NEWEST)))
    reports = pipeline.compile_folder(folder)
    assert [len(column) for column in reports] == [1, 1, 1]
    stage = folder.models[0].stages[0]
    lines = compiler.differences(stage, reports[0][0])
    assert any("after compilation" in line for line in lines)
    assert any("DEQUANTIZE left on the CPU" in line for line in lines)
    assert any("7 more operators" in line for line in compiler.differences(stage, _oldest()))


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
def test_split_tells_what_the_compiler_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["edgetpu", "split", str(DIGITS), "-n", "2", "-o", str(out), "--json", "-"]
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, NEWEST)))
    assert command(arguments) == 0
    ((first, second),) = json.loads(capsys.readouterr().out)["compiled"]
    assert first["off_chip_bytes"] == second["off_chip_bytes"] == 512
    assert first["operators_on_cpu"] == 1
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, TOO_LARGE, 1, writes=False)))
    assert command(arguments) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["compiled"] is None
    assert told.err.count("error:") == 1 and "large activation tensors" in told.err
    assert (out / "pipeline.json").is_file()  # the stages still run on the processor


def _oldest() -> compiler.CompilerReport:
    return compiler.parse_report(OLDEST)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
@pytest.mark.parametrize("code", [0, 1])
def test_a_stage_that_the_compiler_refuses(
    folder: PipelineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, TOO_LARGE, code, writes=False)))
    with pytest.raises(ResultError, match="large activation tensors"):
        pipeline.compile_folder(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")
@pytest.mark.parametrize("code", [0, 1])
def test_a_refused_stage_is_searched_for_a_part_that_compiles(
    folder: PipelineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, TOO_LARGE, code, writes=False)))
    (tmp_path / "searched.txt").write_text(SEARCHED)
    stage = folder.models[0].stages[0]
    (report,) = compiler.compile_stages(folder, [stage])
    plain, search = calls(tmp_path)
    assert plain == ["--show_operations", "--out_dir", str(folder.path), plain[-1]]
    assert search[3:-1] == ["--search_delegate", "--delegate_search_step", "1"]
    assert search[-1] == plain[-1] == str(folder.path / stage.file)
    assert any("left on the CPU" in line for line in compiler.differences(stage, report))


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")
def test_models_of_one_stick_are_compiled_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = read_graph(DIGITS)
    both = pipeline.split([DIGITS, DIGITS], plan([graph, graph], 2, Options("params")), tmp_path)
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, TOGETHER)))
    reports = pipeline.compile_folder(both)
    assert [len(column) for column in reports] == [2, 2]
    made = calls(tmp_path)
    assert [call[3:] for call in made] == [
        [str(both.path / model.stages[stage].file) for model in both.models] for stage in (0, 1)
    ]
    assert all((both.path / s.compiled_file).is_file() for m in both.models for s in m.stages)


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")
def test_models_that_are_refused_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = read_graph(DIGITS)
    both = pipeline.split([DIGITS, DIGITS], plan([graph, graph], 2, Options("params")), tmp_path)
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, SILENT, 1, writes=False)))
    with pytest.raises(ResultError, match="it gives no reason, and exit code 1"):
        pipeline.compile_folder(both)
    assert len(calls(tmp_path)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")
def test_an_older_result_does_not_pass_for_this_one(
    folder: PipelineFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, NEWEST)))
    pipeline.compile_folder(folder)
    monkeypatch.setenv("PATH", str(stand_in(tmp_path, MUTE, writes=False)))
    with pytest.raises(ResultError, match="wrote no "):
        pipeline.compile_folder(folder)
