"""Requests of several models, carried out where their plan places them.

A device has a queue and one thread, which takes requests in the order in which they come, whatever
their model. Stages run on LiteRT on the processor, which stands in for every stick.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from toolchain.edgetpu.pipeline import frames_for
from toolchain.edgetpu.run.backends import LiteRTStage, ends_of
from toolchain.edgetpu.run.rate_folder import RateFolder
from toolchain.edgetpu.run.requests import Arrivals
from toolchain.edgetpu.run.runner import Channel, StageError, StageRunner, Tensors
from toolchain.errors import InputError
from toolchain.ops.spec import Array


@dataclass(frozen=True)
class Request:
    """`number`: of its model, from 0; `at_s`: when it comes, from the start of the run."""

    model: int
    number: int
    at_s: float


@dataclass(frozen=True)
class Answer:
    """The outputs of a request, in the order of the model's file, and the time it took."""

    request: Request
    outputs: tuple[Array, ...]
    latency_ms: float


@dataclass
class _Work:
    """A request under way: its tensors so far, and the stage that is next."""

    request: Request
    tensors: dict[str, Array]
    began: float
    stage: int = 0


@dataclass
class RateRunner:
    """`stages`: of each model; `devices`: the device of each; `outputs`: names, by model.

    `busy_ms`: of each device, complete once the last answer is taken.
    """

    stages: Sequence[Sequence[StageRunner]]
    devices: Sequence[Sequence[int]]
    outputs: Sequence[Sequence[str]]
    busy_ms: dict[int, float] = field(default_factory=dict)

    def run(
        self, requests: Sequence[Request], frames: Sequence[Sequence[Tensors]]
    ) -> Iterator[Answer]:
        """Answers as they come. `frames`: by model, those that its requests take in turn.

        Closing the iterator stops all threads and waits for them. Raises StageError, naming the
        file of the stage that failed.
        """
        used = sorted({device for path in self.devices for device in path})
        queues: dict[int, Channel[_Work]] = {device: Channel(sys.maxsize) for device in used}
        done: Channel[Answer] = Channel(sys.maxsize)
        stopped, failures = threading.Event(), list[StageError]()
        self.busy_ms = dict.fromkeys(used, 0.0)

        def stop() -> None:
            stopped.set()
            for channel in queues.values():
                channel.abort()
            done.abort()

        def feed() -> None:
            begin = time.perf_counter()
            for request in requests:
                wait_s = request.at_s - (time.perf_counter() - begin)
                if stopped.wait(max(0.0, wait_s)):
                    return
                given = frames[request.model]
                tensors = dict(given[request.number % len(given)])
                work = _Work(request, tensors, time.perf_counter())
                queues[self.devices[request.model][0]].put(work)

        def serve(device: int) -> None:
            while (work := queues[device].get()) is not None:
                model, begin = work.request.model, time.perf_counter()
                stage = self.stages[model][work.stage]
                try:
                    found, _ = stage.invoke(work.tensors)
                except BaseException as error:  # handed to the caller's thread
                    reason = f"request {work.request.number}: {error or type(error).__name__}"
                    failures.append(StageError(work.stage, stage.name, reason))
                    stop()
                    return
                now = time.perf_counter()
                self.busy_ms[device] += 1e3 * (now - begin)
                work.tensors |= found
                work.stage += 1
                if work.stage < len(self.stages[model]):
                    queues[self.devices[model][work.stage]].put(work)
                    continue
                outputs = tuple(work.tensors[name] for name in self.outputs[model])
                done.put(Answer(work.request, outputs, 1e3 * (now - work.began)))

        threads = [threading.Thread(target=feed, name="feed", daemon=True)]
        threads += [
            threading.Thread(target=serve, args=(device,), name=f"device {device}", daemon=True)
            for device in used
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in requests:
                answer = done.get()
                if answer is None:
                    break
                yield answer
        finally:
            stop()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]


def open_rate_runner(folder: RateFolder, fast: bool = False) -> RateRunner:
    """Load every stage on the processor; `fast`: with LiteRT's optimised kernels."""
    stages = [
        [
            LiteRTStage([(model, folder.path / stage.file)], number, (), stage.file, fast)
            for number, stage in enumerate(model.stages)
        ]
        for model in folder.models
    ]
    devices = [[visit.device for visit in path] for path in folder.plan.paths]
    return RateRunner(stages, devices, [model.outputs for model in folder.models])


def requests_of(
    rates: Sequence[float], counts: Sequence[int], arrivals: Arrivals, seed: int
) -> list[Request]:
    """So many requests of each model, at its rate a second, in the order in which they come."""
    rng = np.random.default_rng(seed)
    found = []
    for model, (rate, count) in enumerate(zip(rates, counts, strict=True)):
        apart = np.full(count, 1 / rate)
        if arrivals is Arrivals.POISSON:
            apart = rng.exponential(1 / rate, count)
        times = np.cumsum(apart)
        found += [Request(model, number, float(at)) for number, at in enumerate(times)]
    return sorted(found, key=lambda request: (request.at_s, request.model))


def frames_by_model(
    folder: RateFolder, paths: Sequence[Path], count: int, seed: int
) -> list[list[Tensors]]:
    """Frames of each model: `count` random ones, or those of `paths`, a file for each input, the
    first model's first. Raises InputError as `frames_of`.
    """
    sizes = [len(model.inputs) for model in folder.models]
    if paths and len(paths) != sum(sizes):
        names = ", ".join(f"{m.name}/{name}" for m in folder.models for name in m.inputs)
        raise InputError(f"{len(paths)} input files for {sum(sizes)} inputs ({names})")
    found, at = [], 0
    for model, size in zip(folder.models, sizes, strict=True):
        ends, _ = ends_of(folder.path / model.stages[0].file)
        details = [(name, *end) for name, end in zip(model.inputs, ends, strict=True)]
        own = paths[at : at + size] if paths else ()
        frames, _ = frames_for(details, own, 1 if own else count, seed + at)
        found.append(list(frames))
        at += size
    return found


def outputs_of(folder: RateFolder, answers: Sequence[Answer]) -> dict[str, Array]:
    """The outputs of each model under MODEL/NAME, stacked in the order of its requests."""
    columns = {}
    for number, model in enumerate(folder.models):
        own = [answer for answer in answers if answer.request.model == number]
        own.sort(key=lambda answer: answer.request.number)
        for place, name in enumerate(model.outputs):
            columns[f"{model.name}/{name}"] = np.stack([answer.outputs[place] for answer in own])
    return columns


def latencies(answers: Sequence[Answer], models: int) -> list[Mapping[str, float | None]]:
    """By model: requests, mean and 99th percentile in ms; None without requests."""
    rows: list[Mapping[str, float | None]] = []
    for model in range(models):
        times = [answer.latency_ms for answer in answers if answer.request.model == model]
        mean = float(np.mean(times)) if times else None
        tail = float(np.percentile(times, 99)) if times else None
        rows.append({"requests": len(times), "mean_ms": mean, "p99_ms": tail})
    return rows
