"""Runs Google's edgetpu_compiler on each stage, and reads its report.

The compiler is in no package registry: it is used where it is installed. Options and file names are
those of https://coral.ai/docs/edgetpu/compiler. The form of the report, and of error messages, is
the one that users have published for versions 2.0 to 16.0 (google-coral/edgetpu issues 60, 178,
313, 411, 427, 444, 458, 518, 572, 651, 671, 686, 800, 829). Not run with the real program.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.edgetpu.run.folder import PipelineFolder, StageFile
from toolchain.errors import MissingToolError, ResultError

PROGRAM = "edgetpu_compiler"
HOW_TO_GET = (
    f"{PROGRAM} is not installed (x86-64 Linux; Coral's package repository, "
    "https://coral.ai/docs/edgetpu/compiler): the stages are plain TFLite files, and run on the "
    "processor"
)
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*(B|KiB|MiB|GiB)\s*$")
_OPERATOR = re.compile(r"^([A-Za-z][A-Za-z0-9_\-]*)\s+(\d+)\s+(\S.*?)\s*$")
_MAPPED = "Mapped to Edge TPU"
_REASONS = (
    re.compile(r"^(Invalid model: .*\n.+)$", re.MULTILINE),
    re.compile(r"^(ERROR: (?!Restored original execution plan).*)$", re.MULTILINE),
    re.compile(r"^(Compilation failed: .*)$", re.MULTILINE),
    re.compile(r"^(Compilation timeout\..*)$", re.MULTILINE),
    re.compile(r"^(Internal compiler error.*)$", re.MULTILINE),
)
_TALK = re.compile(
    r"Edge TPU Compiler version|Started a compilation|Compilation (child process|failed!|succeed)"
)
_MOST_SECONDS = 600.0
_SEARCHES = 10
"""How often at most the search for a part that compiles starts anew."""


@dataclass(frozen=True)
class OperatorLine:
    """Operators of one kind, and where the compiler mapped them."""

    kind: str
    count: int
    status: str

    @property
    def mapped(self) -> bool:
        return self.status.startswith(_MAPPED)


@dataclass(frozen=True)
class CompilerReport:
    """The report of one model. Sizes have two decimals of their unit, as it prints them."""

    on_chip_bytes: int
    off_chip_bytes: int
    processor_operations: int
    operators: tuple[OperatorLine, ...]

    @property
    def on_processor(self) -> tuple[OperatorLine, ...]:
        """Operators that were left on the CPU, as far as the report lists them."""
        return tuple(line for line in self.operators if not line.mapped)


def parse_report(text: str) -> CompilerReport:
    """Read what `edgetpu_compiler -s` prints for one model.

    Raises ResultError if it is not a report: the compiler failed, or prints another form.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            values.setdefault(key.strip(), value.strip())
    version = re.search(r"Edge TPU Compiler version \S+", text)
    used = values.get("On-chip memory used for caching model parameters")
    streamed = values.get("Off-chip memory used for streaming uncached model parameters")
    if version is None or used is None or streamed is None:
        raise ResultError(f"{PROGRAM} gave no report; it says: {_telling(text) or 'no reason'}")
    operators: list[OperatorLine] = []
    table = False
    for line in text.splitlines():
        if re.match(r"^Operator\s+Count\s+Status\s*$", line):
            table = True
            continue
        match = _OPERATOR.match(line) if table else None
        if match:
            operators.append(OperatorLine(match[1], int(match[2]), match[3]))
    listed = sum(line.count for line in operators if not line.mapped)
    return CompilerReport(
        _size(used),
        _size(streamed),
        max(listed, _number(values.get("Number of operations that will run on CPU"))),
        tuple(operators),
    )


def _telling(text: str) -> str:
    """The reason that a failed run tells: '' where it says nothing (issues 411, 800)."""
    reasons = {" ".join(match.split()): None for form in _REASONS for match in form.findall(text)}
    if reasons:
        return "; ".join(reasons)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _TALK.match(line)]
    return lines[-1] if lines else ""


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


def _size(text: str) -> int:
    match = _SIZE.match(text)
    if match is None:
        raise ResultError(f"{PROGRAM} printed {text!r} where a size was expected")
    return round(float(match[1]) * _UNITS[match[2]])


def installed() -> bool:
    return shutil.which(PROGRAM) is not None


def parse_reports(text: str) -> tuple[CompilerReport, ...]:
    """The reports of models that were compiled together, in their order."""
    version = re.search(r"Edge TPU Compiler version \S+", text)
    head = version[0] if version else ""
    blocks = re.split(r"^(?=Input model:|Input:)", text, flags=re.MULTILINE)
    if len(blocks) < 2:
        return (parse_report(text),)
    return tuple(parse_report(f"{head}\n{block}") for block in blocks[1:])


def compile_stages(
    folder: PipelineFolder, stages: Sequence[StageFile]
) -> tuple[CompilerReport, ...]:
    """Compile the stages that share one stick together, so that they share its cache.

    One call compiles all of them, in the plan's order. A stage that is refused on its own is tried
    once more with `--search_delegate`, which leaves operators at its end to the CPU. Raises
    MissingToolError if the compiler is not installed, ResultError if it refuses.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise MissingToolError(HOW_TO_GET)
    try:
        return _compile(program, folder, stages, ())
    except _RefusedError:
        if len(stages) > 1:  # whether the search takes several models is not documented
            raise
        step = max(1, len(stages[0].operators) // _SEARCHES)
        search = ("--search_delegate", "--delegate_search_step", str(step))
        with contextlib.suppress(ResultError):  # the first refusal is the one to tell
            return _compile(program, folder, stages, search)
        raise


class _RefusedError(ResultError):
    """The compiler ended without a compiled stage."""


def _compile(
    program: str,
    folder: PipelineFolder,
    stages: Sequence[StageFile],
    options: Sequence[str],
) -> tuple[CompilerReport, ...]:
    """Raises ResultError where the compiler refuses, is too slow, or writes nothing."""
    sources = [str(folder.path / stage.file) for stage in stages]
    named = ", ".join(stage.file for stage in stages)
    for stage in stages:  # an older result must not pass for this one
        (folder.path / stage.compiled_file).unlink(missing_ok=True)
    try:
        result = subprocess.run(
            [program, "--show_operations", "--out_dir", str(folder.path), *options, *sources],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ResultError(f"{PROGRAM} took over {_MOST_SECONDS:g} s on {named}") from error
    except OSError as error:
        raise MissingToolError(f"{program} cannot be run: {error.strerror}") from error
    told = _telling(f"{result.stdout}\n{result.stderr}") or (
        f"it gives no reason, and exit code {result.returncode}"
    )
    if result.returncode:
        raise _RefusedError(f"{PROGRAM} refuses {named}: {told}")
    for stage in stages:
        if not (folder.path / stage.compiled_file).is_file():
            raise _RefusedError(f"{PROGRAM} wrote no {stage.compiled_file}; it says: {told}")
    reports = parse_reports(result.stdout)
    if len(reports) != len(stages):
        raise ResultError(f"{PROGRAM} gave {len(reports)} reports for {len(stages)} models")
    return reports


def differences(stage: StageFile, report: CompilerReport) -> tuple[str, ...]:
    """The differences between report and plan, as text."""
    lines = []
    held = report.on_chip_bytes + report.off_chip_bytes
    if stage.compiled_bytes and abs(held - stage.compiled_bytes) > 0.15 * stage.compiled_bytes:
        lines.append(
            f"{held:,} B of parameters after compilation, {stage.compiled_bytes:,} B were estimated"
        )
    if report.off_chip_bytes and not stage.streamed_bytes:
        lines.append(
            f"{report.off_chip_bytes:,} B are streamed with every frame, none were planned; plan "
            "again with --balance-by compiled or a smaller --cache-mib"
        )
    for line in report.on_processor:
        lines.append(f"{line.count} {line.kind} left on the CPU: {line.status}")
    unlisted = report.processor_operations - sum(line.count for line in report.on_processor)
    if unlisted > 0:
        lines.append(f"{unlisted} more operators left on the CPU; see the compiler's log")
    return tuple(lines)
