"""Compare the board's outputs with the reference's, and report every differing element."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Board, naming, stand_in
from toolchain.boards import board as find_board
from toolchain.deployment.agreement import Agreement
from toolchain.deployment.compile import Compiled, compile_model
from toolchain.deployment.decoded import Decoder, Decoding
from toolchain.deployment.run import Deployment, Inference, RunTime, counted_time, deployed
from toolchain.deployment.stand_in import firmware_here
from toolchain.device.patience import RUN_SECONDS
from toolchain.device.session import MemoryUse
from toolchain.errors import LinkError, ResultError
from toolchain.files import scratch_folder
from toolchain.files.notebook import Card, Told
from toolchain.ir import DType, End, External
from toolchain.ops.interpret import interpret
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report, silent
from toolchain.quantise.float_use import float_use
from toolchain.reference import (
    FLOAT_TOLERANCE,
    SMALLEST,
    Judge,
    OnnxRuntime,
    OperatorDifferences,
    Reference,
    RuntimeProcess,
    open_reference,
)
from toolchain.report.plan import kernels_json

Array = NDArray[np.generic]
_BIG_INPUT_BYTES = 4096
_DECIMALS = 4
"""Decimals of a difference: float32 outputs are not exact multiples of their scale."""


def _none(inputs: tuple[End, ...]) -> Iterable[Sequence[Mapping[str, Array]]]:
    """No inputs of the user's own."""
    return ()


@dataclass(frozen=True)
class Difference:
    """One element that differs: the run, the place, and the difference."""

    run: int
    output: str
    index: tuple[int, ...]
    board: float
    reference: float


@dataclass(frozen=True, eq=False)
class Differing:
    """The differing elements of one output of one run, as columns; `indices` is (elements,
    rank).
    """

    run: int
    output: str
    indices: NDArray[np.intp]
    board: Array
    reference: Array

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, place: int) -> Difference:
        index = tuple(int(i) for i in self.indices[place])
        board, reference = float(self.board[place]), float(self.reference[place])
        return Difference(self.run, self.output, index, board, reference)

    def largest(self, unit: float) -> float:
        """The largest difference in units; infinite where either value is NaN."""
        if not len(self):
            return 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            steps = np.abs(self.board.astype(np.float64) - self.reference.astype(np.float64))
        return float(np.where(np.isnan(steps), np.inf, steps).max()) / unit


@dataclass(frozen=True)
class Differences(Sequence[Difference]):
    """All elements that differ, by run, output and index; each is created when it is read."""

    parts: tuple[Differing, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(map(len, self.parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, place: int) -> Difference: ...
    @overload
    def __getitem__(self, place: slice) -> list[Difference]: ...
    def __getitem__(self, place: int | slice) -> Difference | list[Difference]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        at = place + len(self) if place < 0 else place
        if not 0 <= at < len(self):
            raise IndexError(place)
        part = bisect_right(self._starts, at) - 1
        return self.parts[part][at - self._starts[part]]


@dataclass(frozen=True)
class OutputDifference:
    """One output of the model over all runs, compared whole.

    `max_difference` is in units of `unit`: 1 for integers, the scale of a float output that was
    stored as integers, and None for one that is computed in float32, where the unit is 2^-16 of
    the largest element of each run.
    """

    output: str
    elements: int
    differing: int
    max_difference: float
    unit: float | None
    agreement: Agreement = field(default_factory=Agreement)

    def json(self) -> dict[str, object]:
        """The fields, with `snr_db` and `top_class` (runs that agree, and all) for sums."""
        fields = {key: value for key, value in asdict(self).items() if key != "agreement"}
        top = self.agreement.top_class
        return fields | {
            "snr_db": self.agreement.snr_db,
            "top_class": None if top is None else {"agreeing": top[0], "runs": top[1]},
        }


@dataclass(frozen=True, repr=False)
class Verification(Told):
    """The result of a comparison. `max_difference` is in units of the output's last place
    (`unit_of`).

    ran_on       the board that ran, or the emulated one that stood for it.
    outputs      the same of each output.
    beyond       the runs of which an output is further off than the tolerance.
    judges       which runtime ran which operators of the model, and why.
    not_independent  '' if another runtime than Thimble's judged, else why none did.
    memory       bytes of stack and arena that were overwritten; None on the host.
    tolerance    difference that the reference's own arithmetic allows: 0 for TFLite models, 1 for
                 ONNX, and 1 where operators compute in float32.
    """

    model: str
    board: str
    ran_on: str
    runs: int
    reference: str
    judges: tuple[Judge, ...]
    not_independent: str
    tolerance: int
    elements: int
    differences: Differences
    max_difference: float
    count: int
    unit: str
    clock_hz: int
    memory: MemoryUse | None
    compiled: Compiled
    outputs: tuple[OutputDifference, ...] = ()
    beyond: tuple[int, ...] = ()
    by_operators: OperatorDifferences | None = None
    """For the runs beyond the tolerance: the difference of each operator by itself. Set if the
    reference can compute it and the board's bytes are exactly those of the operators' references in
    each of these runs."""
    reference_moves: float = 0.0
    """In the runs beyond the tolerance: how far the reference's own outputs move, in the same
    units, where each float of its inputs moves by one last bit. 0 without such a run or input."""
    decoding: Decoding | None = None
    """The boxes of `--decode` behind the model's outputs, judged by their NumPy reference alone.
    None without it."""

    def card(self) -> Card:
        """The verdict: elements that differ, from which reference, on which board."""
        share = f"{self.differing:,} of {self.elements:,} elements differ"
        largest = f", by at most {self.max_difference:g}" if self.differing else ""
        facts = (
            ("verdict", "passed" if self.passed else "failed"),
            ("compared", f"{share}{largest}; {self.runs} runs, {self.reference}"),
            ("ran on", self.ran_on),
            ("longest run", f"{self.count:,} {self.unit}"),
        )
        return Card("Verification", f"{self.model} on {self.board}", facts)

    @property
    def differing(self) -> int:
        return len(self.differences)

    @property
    def computes_float(self) -> bool:
        """Whether operators compute in float32, so that last bits may differ."""
        return float_use(self.compiled.plan) is not None

    @property
    def passed(self) -> bool:
        return self.max_difference <= self.tolerance or self.operators_agree

    @property
    def ill_conditioned(self) -> bool:
        """Whether the reference differs from itself by more than is allowed, for one last bit of
        its inputs: no comparison of whole outputs can judge such a model."""
        return self.reference_moves > self.tolerance

    @property
    def operators_agree(self) -> bool:
        """Whether no single operator exceeds the tolerance: differences only accumulated."""
        compared = self.by_operators
        return compared is not None and compared.max_difference <= self.tolerance


def verify_model(  # noqa: PLR0913 - the public interface: a keyword each
    model: str | Path,
    board: str,
    runs: int = 20,
    seed: int = 0,
    given: Callable[[tuple[End, ...]], Iterable[Sequence[Mapping[str, Array]]]] = _none,
    port: str | None = None,
    options: PlanOptions | None = None,
    out: str | Path | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = silent,
    *,
    force: bool = False,
    external: External | None = None,
    limit_seconds: float = RUN_SECONDS,
) -> Verification:
    """Compile `model`, run `given` inputs and then `runs` random ones, compare with the reference.

    `given` makes inputs by name once the model's inputs are known, as sequences of runs: the state
    of a model is reset before each sequence. Random inputs come from `seed`, with one generator per
    run; a model with state gets them as two sequences. `limit_seconds`: of one inference, on the
    board and in the reference. A board that is not here is replaced by an emulated one, which
    `ran_on` names (`firmware_here`); a core without a board by one that has the core, or by this
    machine where there is none. `out` keeps the build. `force`, `external`
    and the errors raised are those of `compile_model`; LinkError where the board fails.
    """
    on = _runs_on(find_board(board))
    with scratch_folder() as scratch:
        folder = Path(out) if out is not None else scratch / "build"
        compiled = compile_model(
            model, on, folder, options, cmsis_nn_folder, report, force=force, external=external
        )
        wanted = (options or PlanOptions()).reading
        process = RuntimeProcess(limit_seconds)
        reference = open_reference(Path(model), process, wanted)
        sequences = list(given(compiled.plan.inputs))
        cases = [case for sequence in sequences for case in sequence]
        begins = _begins([len(sequence) for sequence in sequences], runs)
        tolerance = max(reference.tolerance, int(float_use(compiled.plan) is not None))
        differences: list[Differing] = []
        elements, worst, count, unit = 0, 0.0, 0, ""
        operators: OperatorDifferences | None = None
        beyond: list[int] = []
        seen: dict[str, OutputDifference] = {}
        moves = 0.0
        decoder = Decoder.of(compiled.plan.graph)
        decoding = None if decoder is None else Decoding()
        with (
            firmware_here(folder, port, report) as firmware,
            deployed(folder, port, None, None, limit_seconds, firmware) as deployment,
        ):
            for run in range(len(cases) + runs):
                report(f"running on {board}", run, len(cases) + runs)
                if deployment.stateful and run in begins:
                    deployment.clear_state()
                    reference.restart()
                if run < len(cases):
                    case = _Case(cases[run])
                else:
                    rng = np.random.default_rng([seed, run - len(cases)])
                    case = _random_case(deployment, rng)
                inputs = case.inputs
                expected = reference.run([inputs[end.name] for end in deployment.inputs])
                try:
                    done = case.run(deployment)
                except LinkError as error:
                    raise LinkError(f"run {run}: {error}") from error
                count, unit = max(count, done.count), done.unit
                furthest = 0.0
                decoded = decoder.op.outputs if decoder is not None else ()
                model_outputs = [end for end in deployment.outputs if end.name not in decoded]
                wants = {end.name: want for end, want in zip(model_outputs, expected, strict=True)}
                if decoder is not None and decoding is not None:
                    wants |= (boxes := decoder.expected(model_outputs, done.outputs))
                    number = decoding.detections + decoder.detections(boxes)
                    decoding = replace(decoding, detections=number)
                for end in deployment.outputs:
                    want = wants[end.name]
                    got = done.outputs[end.name].reshape(end.model_shape)
                    elements += got.size
                    differing = compare(run, end.name, got, want)
                    largest = round(differing.largest(unit_of(end, want)), _DECIMALS)
                    if decoding is not None and end.name in decoded:
                        decoding = decoding.with_output(got.size, len(differing))
                        largest = max(largest, tolerance + 1.0) if len(differing) else 0.0
                    output = _with(seen.get(end.name), end, differing, got.size, largest)
                    agreed = output.agreement.with_run(end, got, want)
                    seen[end.name] = replace(output, agreement=agreed)
                    furthest = max(furthest, largest)
                    if len(differing):
                        differences.append(differing)
                worst = max(worst, furthest)
                if furthest > tolerance:
                    beyond.append(run)
                    moves = max(moves, _moved(deployment, reference, inputs, expected))
                    report(f"comparing run {run} operator by operator")
                    one = _by_operators(deployment, reference, compiled, inputs, done, run)
                    if len(beyond) == 1 or one is None:
                        operators = one
                    elif operators is not None:
                        operators = operators.with_run(one)
            memory = None if find_board(on).is_host else deployment.memory_use()
            clock_hz, ran_on = deployment.clock_hz, deployment.ran_on
    return Verification(
        model=compiled.plan.graph.name,
        board=board,
        ran_on=ran_on,
        runs=len(cases) + runs,
        reference=reference.name,
        judges=reference.judges,
        not_independent=reference.not_independent,
        tolerance=tolerance,
        elements=elements,
        differences=Differences(tuple(differences)),
        max_difference=worst,
        count=count,
        unit=unit,
        clock_hz=clock_hz,
        memory=memory,
        compiled=compiled,
        outputs=tuple(seen.values()),
        beyond=tuple(beyond),
        by_operators=operators,
        reference_moves=moves,
        decoding=decoding,
    )


_NUDGES = 8
"""How often the inputs of a run are moved by a last bit."""


def _moved(
    deployment: Deployment,
    reference: Reference,
    inputs: Mapping[str, Array],
    expected: Sequence[Array],
) -> float:
    """The most that an output of ONNX Runtime moves, in its units, where each float of the inputs
    moves by one last bit, up or down."""
    given = [inputs[end.name] for end in deployment.inputs]
    if not isinstance(reference, OnnxRuntime) or all(x.dtype != np.float32 for x in given):
        return 0.0
    rng, furthest = np.random.default_rng(0), 0.0
    for _ in range(_NUDGES):
        ends = zip(deployment.outputs, expected, strict=False)  # boxes of --decode come behind
        moved = reference.run([_nudged(values, rng) for values in given])
        for (end, before), after in zip(ends, moved, strict=True):
            apart = compare(0, end.name, after, before)
            furthest = max(furthest, apart.largest(unit_of(end, before)))
    return round(furthest, _DECIMALS)


def _nudged(values: Array, rng: np.random.Generator) -> Array:
    """Each float moved to the next one above or below."""
    if values.dtype != np.float32:
        return values
    towards = np.where(rng.random(values.shape) < 0.5, -np.inf, np.inf).astype(np.float32)
    return np.nextafter(values, towards)


def _runs_on(target: Board) -> str:
    """The board that is compiled for: one that stands for a core without a board, else itself."""
    if not target.is_core:
        return target.name
    other = stand_in(target)
    return "host" if other is None else other.name


def _by_operators(
    deployment: Deployment,
    reference: Reference,
    compiled: Compiled,
    inputs: Mapping[str, Array],
    done: Inference,
    run: int,
) -> OperatorDifferences | None:
    """Compare each operator alone; None where that is not possible, or the board does not compute
    what the reference does."""
    if not isinstance(reference, OnnxRuntime):
        return None
    given = [end.to_graph(inputs[end.name]) for end in deployment.inputs]
    for end, value in zip(deployment.outputs, interpret(compiled.plan.graph, given), strict=True):
        got = done.outputs[end.name].reshape(end.model_shape)
        if not np.array_equal(got, end.to_model(value).reshape(got.shape)):
            return None
    return reference.by_operators([inputs[end.name] for end in deployment.inputs], run)


def _with(
    before: OutputDifference | None, end: End, differing: Differing, elements: int, largest: float
) -> OutputDifference:
    """The differences of an output, with those of another run."""
    if before is None:
        in_float = end.tensor.dtype is DType.FLOAT32
        step = end.tensor.q.scale if end.model_dtype is DType.FLOAT32 and not in_float else 1.0
        before = OutputDifference(end.name, 0, 0, 0.0, None if in_float else step)
    return replace(
        before,
        elements=before.elements + elements,
        differing=before.differing + len(differing),
        max_difference=max(before.max_difference, largest),
    )


def unit_of(end: End, wanted: Array) -> float:
    """The size of a difference of one: a step of an integer output, with the scale in the file.

    For an output that the device computes in float32, it is FLOAT_TOLERANCE of its largest element.
    """
    if end.tensor.dtype is DType.FLOAT32:
        finite = np.abs(wanted[np.isfinite(wanted.astype(np.float64))].astype(np.float64))
        return max(float(finite.max(initial=0.0)), SMALLEST) * FLOAT_TOLERANCE
    return end.tensor.q.scale if end.model_dtype is DType.FLOAT32 else 1.0


def _begins(lengths: Sequence[int], runs: int) -> frozenset[int]:
    """The runs before which state begins anew: at each given sequence, and twice in `runs`."""
    starts = [0, *accumulate(lengths)]
    return frozenset((*starts, starts[-1] + (runs + 1) // 2))


@dataclass(frozen=True)
class _Case:
    """Inputs by name, and the seed they come from where the board makes them by itself."""

    inputs: Mapping[str, Array]
    pattern: int | None = None

    def run(self, deployment: Deployment) -> Inference:
        if self.pattern is None:
            return deployment.run(self.inputs)
        return deployment.run_pattern(self.pattern)


def _random_case(deployment: Deployment, rng: np.random.Generator) -> _Case:
    """A run on random inputs. Big ones are made on the board: an emulated serial port carries some
    20 kB/s.
    """
    if sum(end.tensor.size_bytes for end in deployment.inputs) > _BIG_INPUT_BYTES:
        seed = int(rng.integers(1, 1 << 32))
        inputs = deployment.pattern(seed)
        if inputs is not None:
            return _Case(inputs, seed)
    return _Case(deployment.random(rng))


def compare(run: int, output: str, got: Array, want: Array) -> Differing:
    """Elements whose bytes differ. NaNs count as equal, since processors choose their bits freely.

    Raises ResultError where the reference returns another type or another number of elements.
    """
    if got.dtype != want.dtype or got.size != want.size:
        raise ResultError(
            f"output {output!r} is {got.dtype.name}{list(got.shape)}, "
            f"the reference's {want.dtype.name}{list(want.shape)}"
        )
    bits = np.dtype(f"u{got.dtype.itemsize}")
    ours = np.ascontiguousarray(got).reshape(-1)
    theirs = np.ascontiguousarray(want).reshape(-1)
    differ = ours.view(bits) != theirs.view(bits)
    if got.dtype.kind == "f":
        differ &= ~(np.isnan(ours) & np.isnan(theirs))
    places = np.flatnonzero(differ)
    indices = np.stack(np.unravel_index(places, got.shape), axis=-1) if got.ndim else None
    if indices is None:
        indices = np.zeros((len(places), 0), np.intp)
    return Differing(run, output, indices, ours[places], theirs[places])


def counted_latency(result: Verification) -> RunTime:
    """The longest run, by the board's own counter: a trace of every run would take longer than
    the comparison.
    """
    return counted_time(result.clock_hz, result.count, result.unit)


def verification_json(result: Verification) -> dict[str, object]:
    """The fields of `thimble verify --json`."""
    latency = counted_latency(result)
    return {
        "model": result.model,
        **naming(result.board),
        "ran_on": result.ran_on,
        "runs": result.runs,
        "reference": result.reference,
        "elements": result.elements,
        "differing": result.differing,
        "max_difference": result.max_difference,
        "tolerance": result.tolerance,
        "passed": result.passed,
        "passed_whole": not result.beyond,
        "outputs": [output.json() for output in result.outputs],
        "runs_beyond_tolerance": list(result.beyond),
        "independent": not result.not_independent,
        "judges": [asdict(judge) for judge in result.judges],
        "reference_moves": result.reference_moves,
        "by_operators": None if result.by_operators is None else asdict(result.by_operators),
        "decoding": None if result.decoding is None else asdict(result.decoding),
        **kernels_json(result.compiled.plan),
        "latency": {
            "total": result.count,
            "unit": result.unit,
            "milliseconds": latency.milliseconds,
            "basis": latency.basis.value if latency.total else None,
        },
        "arena_bytes": result.compiled.plan.arena.size_bytes,
        "touched": None
        if result.memory is None
        else {
            "stack_bytes": result.memory.stack_bytes,
            "arena_bytes": result.memory.arena_bytes,
        },
        "differences": [
            {
                "run": d.run,
                "output": d.output,
                "index": list(d.index),
                "board": d.board,
                "reference": d.reference,
            }
            for d in result.differences
        ],
    }
