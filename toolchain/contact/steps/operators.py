"""Each kind of operator on the board: bytes, cycles cold and warm, the prediction."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from toolchain.contact.document import Sample
from toolchain.contact.measured import Ran, ran
from toolchain.contact.step import Step
from toolchain.contact.steps import silence
from toolchain.contact.visit import Told, Visit, told
from toolchain.errors import DoesNotFitError, LinkError
from toolchain.ir.merged import merged
from toolchain.ops import forms
from toolchain.ops.forms import Choice
from toolchain.planning.options import Optimise, PlanOptions

_TOGETHER = 8
"""Kinds in one firmware."""
_SHARE = 0.6
"""Part of the time that is left; networks come afterwards."""
_OPTIONS = PlanOptions(
    scheduler="kahn", allocator="greedy-size", nearly_free=False, optimise=Optimise.SIZE
)
"""No search for the smallest arena: kernels are tried, not plans."""
_LOST = 2
"""Firmware in a row that fails on the board, after which no other is tried."""


@dataclass
class _Tried:
    samples: list[Sample] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    equal: list[str] = field(default_factory=list)
    too_big: list[str] = field(default_factory=list)
    firmware: int = 0
    failed: int = 0


def kinds() -> tuple[str, ...]:
    """All kinds, those first whose kernel is chosen by the core: they take most of the time of
    networks."""
    found = forms()
    return tuple(sorted(found, key=lambda kind: (not isinstance(found[kind].select, Choice), kind)))


def tried_kinds(visit: Visit, names: Sequence[str], seconds: float) -> Told:
    """Samples of these kinds, in their order, for `seconds`; firmware that is begun ends later."""
    until, tried = visit.left_seconds - seconds, _Tried()
    done = 0
    while done < len(names) and visit.left_seconds > until and tried.failed < _LOST:
        visit.report("operators", done, len(names))
        _try(visit, names[done : done + _TOGETHER], tried)
        done += _TOGETHER
    left_out = list(names[done:])
    facts = [f"{len(tried.equal)} kinds of operators compute the reference's bytes"]
    if tried.too_big:
        facts.append(f"too big for the board: {', '.join(tried.too_big)}")
    if left_out:
        why = "the board failed" if tried.failed >= _LOST else "the time was over"
        facts.append(f"left out, as {why}: {len(left_out)} kinds")
    values = {"equal": tried.equal, "too_big": tried.too_big, "left_out": left_out}
    return told(tried.findings, facts, values, tried.samples)


def _try(visit: Visit, names: Sequence[str], tried: _Tried) -> None:
    """One firmware of these kinds; two of half as many where it does not fit."""
    graphs = [
        forms()[name].sample(np.random.default_rng(zlib.crc32(name.encode()))) for name in names
    ]
    tried.firmware += 1
    try:
        done = ran(visit, merged(graphs), _OPTIONS, f"operators{tried.firmware}")
    except DoesNotFitError:
        if len(names) == 1:
            tried.too_big += names
            return
        half = len(names) // 2
        _try(visit, names[:half], tried)
        _try(visit, names[half:], tried)
        return
    except LinkError as error:
        visit.leave()
        tried.failed += 1
        tried.findings += [f"{', '.join(names)}: {error}", *silence.asked(visit, error)]
        return
    tried.failed = 0
    for index, name in enumerate(names):
        _judge(done, index, name, tried)


def _judge(done: Ran, index: int, name: str, tried: _Tried) -> None:
    """The bytes of a kind, and the samples of its operators."""
    begins = f"g{index}_"
    mine = [output for output in done.plan.graph.outputs if output.startswith(begins)]
    wrong = sum(done.differing[output] for output in mine)
    total = sum(done.elements[output] for output in mine)
    if wrong:
        tried.findings.append(f"{name}: {wrong:,} of {total:,} elements are not the reference's")
    else:
        tried.equal.append(name)
    for number, operator in enumerate(done.sources.operators):
        if done.plan.graph.ops[operator.numbers[0]].name.startswith(begins):
            sample = done.sample(number, name)
            tried.samples += [sample] if sample else []


def _run(visit: Visit) -> Told:
    return tried_kinds(visit, kinds(), visit.left_seconds * _SHARE)


STEP = Step("operators", "operators: bytes and cycles", _run, own_firmware=True)
