"""Four whole networks: the shapes of MLPerf Tiny, with seeded weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from toolchain.contact.document import Sample
from toolchain.contact.measured import ran
from toolchain.contact.network import Network
from toolchain.contact.power.energy import GAP_SECONDS, Burst, energies
from toolchain.contact.step import Step
from toolchain.contact.steps import silence
from toolchain.contact.visit import Told, Visit, skipped, told
from toolchain.device.session import Session
from toolchain.errors import DoesNotFitError, LinkError, ThimbleError
from toolchain.ir import Graph
from toolchain.ops.arithmetic.activation import Activation
from toolchain.planning.options import PlanOptions

_OPTIONS = PlanOptions(fast=True)
_RELU = Activation.RELU
_BURST_SECONDS = 2.0
_FEWEST_RUNS, _MOST_RUNS = 5, 1000
"""Runs in a burst, of which the energy is measured."""


def anomaly_detection() -> Graph:
    """The dense autoencoder of Banbury et al., "MLPerf Tiny Benchmark" (NeurIPS 2021): 640 values
    to 8 and back, nine hidden layers."""
    net = Network("ad", (1, 640))
    x = net.input
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.relu(net.dense(x, units))
    return net.graph(net.dense(x, 640))


def keyword_spotting() -> Graph:
    """DS-CNN, small (Zhang et al., "Hello Edge", 2017, table 9): 49 frames of 10 features."""
    net = Network("kws", (1, 49, 10, 1))
    x = net.conv(net.input, 64, (10, 4), 2, _RELU)
    for _ in range(4):
        x = net.conv(net.depthwise(x, 3, 1, _RELU), 64, relu=_RELU)
    return net.classifier(x, 12)


def image_classification() -> Graph:
    """ResNet-8 of Banbury et al. (2021): three blocks of two convolutions, 32x32x3."""
    net = Network("ic", (1, 32, 32, 3))
    x = net.conv(net.input, 16, 3, 1, _RELU)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv(net.conv(x, channels, 3, stride, _RELU), channels, 3)
        x = net.add(y, x if stride == 1 else net.conv(x, channels, 1, stride), _RELU)
    return net.classifier(x, 10)


def visual_wake_words() -> Graph:
    """MobileNetV1 (Howard et al., 2017, table 1) of a quarter of the width, 96x96x3."""
    net = Network("vww", (1, 96, 96, 3))
    x = net.conv(net.input, 8, 3, 2, _RELU)
    wide = (*((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)), *((128, 1),) * 5)
    for channels, stride in (*wide, (256, 2), (256, 1)):
        x = net.conv(net.depthwise(x, 3, stride, _RELU), channels, relu=_RELU)
    return net.classifier(x, 2)


NETWORKS: Mapping[str, Callable[[], Graph]] = MappingProxyType(
    {
        "ad": anomaly_detection,
        "kws": keyword_spotting,
        "ic": image_classification,
        "vww": visual_wake_words,
    }
)
"""By their short names, the quickest first."""


def tried_networks(visit: Visit, names: tuple[str, ...]) -> Told:
    """These networks, each while there is time."""
    findings: list[str] = []
    facts: list[str] = []
    rows: list[dict[str, Any]] = []
    samples: list[Sample] = []
    bursts: list[Burst] = []
    recorder = visit.desk.recorder
    try:
        if recorder is not None:
            recorder.start()
    except ThimbleError as error:
        findings.append(str(error))
        recorder = None
    for number, name in enumerate(names):

        def more(session: Session, count: int, name: str = name) -> None:
            if recorder is not None:
                bursts.append(burst(visit, session, name, count))

        visit.report(f"network {name}", number, len(names))
        if visit.left_seconds <= 0:
            facts.append(f"{name} was left out, as the time was over")
            continue
        try:
            done = ran(visit, NETWORKS[name](), _OPTIONS, f"network-{name}", more)
        except DoesNotFitError as error:
            facts.append(f"{name} does not fit: {error.message.splitlines()[0]}")
            continue
        except LinkError as error:
            visit.leave()
            findings += [f"{name}: {error}", *silence.asked(visit, error)]
            continue
        counted = range(len(done.sources.operators))
        each = (done.sample(i, done.sources.operators[i].kind) for i in counted)
        samples += [sample for sample in each if sample is not None]
        wrong, total = sum(done.differing.values()), sum(done.elements.values())
        if wrong:
            findings.append(f"{name}: {wrong:,} of {total:,} elements are not the reference's")
        predicted = sum(done.predicted)
        facts.append(
            f"{name}: {done.cold:,} {done.unit} in the first run, {done.warm:,} then, "
            f"{predicted:,} predicted; {done.stack_bytes:,} bytes of stack"
        )
        rows.append(
            {
                "name": name,
                "unit": done.unit,
                "cold": done.cold,
                "warm": done.warm,
                "predicted": predicted,
                "differing": wrong,
                "arena_bytes": done.plan.arena.size_bytes,
                "flash_bytes": done.flash_bytes,
                "stack_bytes": done.stack_bytes,
            }
        )
    if bursts:
        _add_energies(visit, bursts, rows, findings, facts)
    if not rows and not findings:
        return skipped("; ".join(facts))
    return told(findings, facts, {"networks": rows}, samples)


def burst(visit: Visit, session: Session, name: str, count: int) -> Burst:
    """Runs of a network in a row, each of `count` cycles, with a gap before and after."""
    desk = visit.desk
    run_seconds = count / (session.hello.clock_hz or visit.board.clock_hz)
    runs = min(max(round(_BURST_SECONDS / run_seconds), _FEWEST_RUNS), _MOST_RUNS)
    desk.sleep(GAP_SECONDS)
    began = desk.clock()
    for _ in range(runs):
        session.repeat()
    ended = desk.clock()
    desk.sleep(GAP_SECONDS)
    return Burst(name, began, ended, runs, run_seconds)


def _add_energies(
    visit: Visit,
    bursts: list[Burst],
    rows: list[dict[str, Any]],
    findings: list[str],
    facts: list[str],
) -> None:
    """Find the bursts in the recording, and add the energy of a run to each network's row."""
    assert visit.desk.recorder is not None
    try:
        found = energies(visit.desk.recorder.finish(visit.report), bursts)
    except ThimbleError as error:
        findings.append(str(error))
        return
    for one, made in zip(found, bursts, strict=True):
        facts.append(
            f"{one.network}: {one.microjoules:,.1f} uJ a run, {one.run_watts * 1e3:.2f} mW in it "
            f"and {one.idle_watts * 1e3:.2f} mW beside it, by {made.runs} runs in a row"
        )
        for row in rows:
            if row["name"] == one.network:
                row |= {
                    "microjoules": round(one.microjoules, 3),
                    "run_milliwatts": round(one.run_watts * 1e3, 4),
                    "idle_milliwatts": round(one.idle_watts * 1e3, 4),
                    "runs_in_a_row": made.runs,
                }


def _run(visit: Visit) -> Told:
    return tried_networks(visit, tuple(NETWORKS))


STEP = Step("networks", "four networks, the shapes of MLPerf Tiny", _run, own_firmware=True)
