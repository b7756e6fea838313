"""The level `c`: what is accepted runs as C under the sanitizers, beside the reference of `verify`.

Each chunk of models is one program; the kernels are compiled once and kept. The plan is that of the
planner, so that a value that is overwritten too early shows as an access to bytes of another.
"""

from __future__ import annotations

import re
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.fuzz.cases import Case, case
from benchmarks.fuzz.outcome import (
    BUILD,
    CIRCULAR,
    EQUAL,
    FAILED,
    HANG,
    LARGE,
    SANITIZER,
    UNDEFINED,
    UNJUDGED,
    WRONG,
    HangError,
    Outcome,
    limit_memory,
    of_error,
    refused,
    time_limit,
)
from benchmarks.fuzz.pool import Serve
from benchmarks.fuzz.reading import PLAN_SECONDS, plan_options, planned, read_outcome
from benchmarks.fuzz.seeds import TFLITE
from benchmarks.fuzz.undefined import undefined
from tests.support.host import model_of
from toolchain.deployment.verification import compare, unit_of
from toolchain.device.compiler import BuildError
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.errors import DoesNotFitError, InputError, LinkError, ResultError
from toolchain.ir import DType
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops import spec_of
from toolchain.ops.interpret import interpret
from toolchain.ops.movement.gather import as_indices, index_limits
from toolchain.ops.spec import Array
from toolchain.quantise.float_use import float_use
from toolchain.reference import (
    OnnxRuntime,
    Reference,
    RuntimeProcess,
    open_reference,
)

_TURNS, _SPECIAL_TURNS = 3, 3
"""Inferences of each model: two random ones, one of extreme integers; then those of special floats,
where these are defined. State goes on from one."""
_TINY, _LARGEST = 1e-45, 3.4028235e38
_SPECIALS = np.array(
    (
        *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-30, -1e30, 2147483648.0),
        *(_TINY, -_TINY, _LARGEST, -_LARGEST, np.inf, -np.inf, np.nan),
    ),
    np.float32,
)
"""Each operand draws its own, so that every pair of them meets in operators of two operands."""
_OF_SPECIALS = tuple(f"toolchain.ops.{family}." for family in ("elementwise", "movement", "unary"))
_DISPUTED = ("add_n",)
"""LiteRT's makes the largest number of an infinity, tflite-micro's does not."""
_MOST_MACS = 20_000_000
_MOST_BYTES = 4_000_000
"""Of arena and of weights: more of either is only slow."""
_RUN_SECONDS = 60.0
_REFERENCE_SECONDS = 30.0
_MODELS_PER_PROCESS = 300
"""A process of the reference keeps all it has opened."""
_DECIMALS = 4


@dataclass(frozen=True)
class _Ready:
    case: Case
    plan: Plan
    model: HostModel


@dataclass(frozen=True)
class _Ran:
    """Inputs and outputs as the model file has them, one of each a turn."""

    inputs: tuple[tuple[Array, ...], ...]
    outputs: tuple[tuple[Array, ...], ...]


class _References:
    """References that share a process, until one of them crashes it."""

    def __init__(self) -> None:
        self._process = RuntimeProcess(_REFERENCE_SECONDS)
        self._opened = 0

    def open(self, path: Path) -> Reference:
        self._opened += 1
        if self._opened > _MODELS_PER_PROCESS:
            self.renew()
        return open_reference(path, self._process)

    def renew(self) -> None:
        self._process.close()
        self._process, self._opened = RuntimeProcess(_REFERENCE_SECONDS), 0


def runner(seed: int) -> Serve:
    """The level `c`."""
    limit_memory(resource.RLIM_INFINITY)  # the address sanitizer maps terabytes
    references = _References()

    def serve(numbers: Sequence[int], begun: Callable[[int], None]) -> Iterator[Outcome]:
        ready = []
        for number in numbers:
            begun(number)
            found = made(seed, case(seed, number))
            if isinstance(found, Outcome):
                yield found
            else:
                ready.append(found)
        with tempfile.TemporaryDirectory(prefix="thimble-fuzz-") as folder:
            yield from _outcomes(ready, Path(folder), references, begun)

    return serve


def outcome_in_c(found: Case) -> Outcome:
    """Of one file."""
    (outcome,) = outcomes_in_c([found])
    return outcome


def outcomes_in_c(cases: Sequence[Case], seed: int = 0) -> list[Outcome]:
    """Of files, in one program, in their order."""
    found = [made(seed, case) for case in cases]
    outcomes = [one for one in found if isinstance(one, Outcome)]
    ready = [one for one in found if isinstance(one, _Ready)]
    with tempfile.TemporaryDirectory(prefix="thimble-fuzz-") as folder:
        outcomes += _outcomes(ready, Path(folder), _References(), lambda number: None)
    places = {case.number: place for place, case in enumerate(cases)}
    return sorted(outcomes, key=lambda outcome: places[outcome.number])


def made(seed: int, found: Case) -> Outcome | _Ready:
    """The C of a case, or why there is none."""
    outcome, prepared = read_outcome(found)
    if prepared is None:
        return outcome
    _, options = plan_options(seed, found)
    try:
        with time_limit(PLAN_SECONDS):
            plan = planned(prepared, "host", options)
            weights = sum(t.size_bytes for t in plan.graph.tensors.values() if t.is_constant)
            if plan.macs > _MOST_MACS or max(plan.arena.size_bytes, weights) > _MOST_BYTES:
                return Outcome(found.number, LARGE)
            return _Ready(found, plan, model_of(plan, f"m{found.number}"))
    except DoesNotFitError as error:
        return refused(found.number, error)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return of_error(found.number, error)


def _outcomes(
    ready: Sequence[_Ready], folder: Path, references: _References, begun: Callable[[int], None]
) -> Iterator[Outcome]:
    if not ready:
        return
    models = [one.model for one in ready]
    try:
        program = build(models, cmsis_nn.find(), folder, sanitize=True, once=True)
    except BuildError as error:
        if len(ready) == 1:
            text = str(error)
            yield Outcome(ready[0].case.number, BUILD, _gist(text), text[:600])
            return
        for index, one in enumerate(ready):
            yield from _outcomes([one], folder / str(index), references, begun)
        return
    running: HostProgram | None = None
    for index, one in enumerate(ready):
        begun(one.case.number)
        running = running or HostProgram(program, models)
        try:
            with time_limit(_RUN_SECONDS, of_the_clock=True):
                ran = _run(one, index, running)
        except (LinkError, HangError) as error:
            yield _died(one, error)
            running.close()
            running = None
        else:
            yield _judged(one, ran, references, folder)
    if running is not None:
        running.close()


def _run(one: _Ready, index: int, running: HostProgram) -> _Ran:
    plan, rng = one.plan, np.random.default_rng(one.case.number)
    limits = index_limits(plan.graph)
    inputs, outputs = [], []
    for turn in range(_TURNS + _SPECIAL_TURNS * _takes_specials(one)):
        given = []
        for end in plan.inputs:
            value = end.random(rng)
            if end.name in limits:
                value = as_indices(value, limits[end.name])
            elif turn >= _TURNS and value.dtype.kind == "f":
                value = rng.choice(_SPECIALS, value.shape)
            elif turn == _TURNS - 1 and value.dtype.kind in "iu":
                info = np.iinfo(value.dtype)
                value = rng.choice([info.min, info.max], value.shape).astype(value.dtype)
            given.append(value)
        ends = zip(plan.inputs, given, strict=True)
        got = running.run([end.to_graph(v) for end, v in ends], index, restart=turn == 0)
        made = zip(plan.outputs, got, strict=True)
        inputs.append(tuple(given))
        outputs.append(tuple(end.to_model(value) for end, value in made))
    return _Ran(tuple(inputs), tuple(outputs))


def _takes_specials(one: _Ready) -> bool:
    """Whether the reference defines what becomes of infinities and NaN: element by element, and
    never as integers. What ONNX Runtime makes of them differs from processor to processor."""
    graph = one.plan.graph
    values = (t for t in graph.tensors.values() if not t.is_constant)
    return (
        one.case.suffix == TFLITE
        and all(value.dtype in (DType.FLOAT32, DType.BOOL) for value in values)
        and all(
            spec_of(op.kind).form(op, graph).reference.__module__.startswith(_OF_SPECIALS)
            for op in graph.ops
        )
        and not any(op.kind in _DISPUTED for op in graph.ops)
    )


def _died(one: _Ready, error: LinkError | HangError) -> Outcome:
    number, text = one.case.number, str(error)
    kinds = "+".join(sorted({op.kind for op in one.plan.graph.ops})[:3])
    if isinstance(error, HangError) and any(op.kind == "while_loop" for op in one.plan.graph.ops):
        return Outcome(number, LARGE, "a loop whose turns depend on data")
    if isinstance(error, HangError):
        return Outcome(number, HANG, f"the C of {kinds}")
    if "reported an error" in text:
        return Outcome(number, FAILED, kinds, text)
    return Outcome(number, SANITIZER, _gist(text), text[:1500])


def _gist(text: str) -> str:
    """What is alike of a sanitizer's or the compiler's words: the fault, and in which function."""
    text = re.sub(r"\bm\d+_\w+", "m_", text)
    undefined = re.search(r"(\w+\.[ch]):(\d+):\d+: runtime error: ([^\n]*)", text)
    if undefined:
        file, line, what = undefined.groups()
        return f"{file}:{line}: {re.sub(r'-?[0-9][0-9.e+-]*', 'N', what)}"[:120]
    found = re.search(r"AddressSanitizer:? ([\w-]+)", text)
    frame = re.search(r"#\d+ \w+ in ((?:thimble|arm|m_)\w*) \S*?(\w+\.[ch]:\d+)?", text)
    if found:
        return f"{found[1]} in {frame[1] if frame else '?'}"
    errors = re.search(r"error: ([^\n]*)", text)
    return (errors[1] if errors else text.strip().splitlines()[-1])[:120]


def _judged(one: _Ready, ran: _Ran, references: _References, folder: Path) -> Outcome:
    """Whether the outputs are the reference's."""
    number = one.case.number
    path = folder / f"case{one.case.suffix}"
    path.write_bytes(one.case.data)
    try:
        with time_limit(10 * _REFERENCE_SECONDS, of_the_clock=True):
            reference = references.open(path)
            worst, where = _worst(one, ran, reference)
    except InputError as error:
        references.renew()
        return Outcome(number, UNJUDGED, _gist(f"error: {error}"))
    except ResultError as error:
        return Outcome(number, WRONG, f"shape of {_kinds(one)}", str(error))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        references.renew()
        return of_error(number, error)
    tolerance = max(reference.tolerance, int(float_use(one.plan) is not None))
    if round(worst, _DECIMALS) > tolerance:
        text = f"{worst:g} beyond {tolerance}: {where}; by {reference.name}"
        runs = [
            [end.to_graph(value) for end, value in zip(one.plan.inputs, given, strict=True)]
            for given in ran.inputs
        ]
        if why := undefined(one.plan.graph, runs):
            return Outcome(number, UNDEFINED, why)
        return Outcome(number, WRONG, _kinds(one), text)
    kind = CIRCULAR if reference.not_independent else EQUAL
    return Outcome(number, kind, reference.name if kind == EQUAL else reference.not_independent)


def _kinds(one: _Ready) -> str:
    return "+".join(sorted({op.kind for op in one.plan.graph.ops})[:4])


def _worst(one: _Ready, ran: _Ran, reference: Reference) -> tuple[float, str]:
    """The largest difference in units of `verify`, and where; state begins anew before."""
    worst, where = 0.0, ""
    reference.restart()
    for turn, (given, outputs) in enumerate(zip(ran.inputs, ran.outputs, strict=True)):
        wanted = reference.run(given)
        for end, got, want in zip(one.plan.outputs, outputs, wanted, strict=True):
            found = compare(turn, end.name, got.reshape(end.model_shape), want)
            largest = found.largest(unit_of(end, want)) if len(found) else 0.0
            if largest > worst:
                first = found[0]
                worst = largest
                where = (
                    f"turn {turn}, {len(found)} of {got.size} of {end.name!r}, first "
                    f"{first.index}: {first.board:g}, not {first.reference:g}"
                )
        if worst > reference.tolerance and isinstance(reference, OnnxRuntime):
            alone = _by_operators(one, given, outputs, reference, turn)
            if alone is not None:
                return alone, "one operator alone"
    return worst, where


def _by_operators(
    one: _Ready, given: Sequence[Array], outputs: Sequence[Array], reference: OnnxRuntime, turn: int
) -> float | None:
    """As `verify`: what operators alone differ by, where the C computes what NumPy does."""
    plan = one.plan
    ends = [end.to_graph(value) for end, value in zip(plan.inputs, given, strict=True)]
    for end, value, got in zip(plan.outputs, interpret(plan.graph, ends), outputs, strict=True):
        if not np.array_equal(got, end.to_model(value).reshape(got.shape)):
            return None
    return float(reference.by_operators(given, turn).max_difference)
