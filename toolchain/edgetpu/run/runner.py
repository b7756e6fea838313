"""Thimble's own runner: a queue and a thread for each device, frames of one model or of several.

A device takes frames in the order in which they come, whatever their model. A pipeline is one model
whose stages are on devices of their own, joined by bounded queues: its results come in the order of
the frames. A frame has its tensors by name. Tensors that a later stage needs travel along; the
others are dropped. A failing stage stops all devices, and the caller gets one error that names it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from toolchain.device.patience import too_slow
from toolchain.errors import InputError, ResultError, ThimbleError
from toolchain.ops.spec import Array

T = TypeVar("T")
Tensors = Mapping[str, Array]


class StageError(ResultError):
    """A stage raised an error; `stage` counts from 0."""

    def __init__(self, stage: int, name: str, reason: str) -> None:
        super().__init__(f"stage {stage} ({name}) failed: {reason}")
        self.stage = stage


@dataclass(frozen=True)
class Limit:
    """The seconds that a stage may take for one frame. `of_stick`: it waits for a stick, which may
    be gone; else this machine computes it.
    """

    seconds: float
    of_stick: bool = False


class StageRunner(Protocol):
    """Runs a stage. Only one thread calls `invoke`."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def outputs(self) -> tuple[str, ...]: ...

    @property
    def limit(self) -> Limit | None:
        """None where `invoke` itself ends in time."""

    def invoke(self, tensors: Tensors) -> tuple[dict[str, Array], float]:
        """Outputs by name, and the milliseconds that copying tensors in and out took."""


@dataclass
class StageTimes:
    """Milliseconds of a device, summed over `frames` frames."""

    frames: int = 0
    busy_ms: float = 0.0
    transfer_ms: float = 0.0
    queue_ms: float = 0.0
    blocked_ms: float = 0.0
    slowest_ms: float = 0.0


@dataclass
class RunTimes:
    """The measurements of a run; complete once the last result is taken.

    `stages`: of each device. In a pipeline, these are the stages.
    """

    stages: list[StageTimes]
    frames: int = 0
    latency_ms: float = 0.0
    first_ms: float = 0.0
    span_ms: float = 0.0

    @property
    def period_ms(self) -> float:
        """Mean time between results; the latency if there is only one."""
        return self.span_ms / (self.frames - 1) if self.frames > 1 else self.first_ms

    @property
    def mean_latency_ms(self) -> float:
        return self.latency_ms / self.frames if self.frames else 0.0


class Channel(Generic[T]):
    """A bounded queue that can be closed from either end; nothing ever waits on a closed one."""

    def __init__(self, capacity: int | None) -> None:
        """`capacity`: None for any number of items."""
        self._items: deque[T] = deque()
        self._capacity = capacity
        self._taken = 0
        self._all: int | None = None
        self._aborted = False
        self._changed = threading.Condition()

    def put(self, item: T) -> bool:
        """Wait for room. Returns False if the channel was aborted; the item is then lost."""
        with self._changed:
            self._changed.wait_for(lambda: self._aborted or self._has_room())
            if self._aborted:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def _has_room(self) -> bool:
        return self._capacity is None or len(self._items) < self._capacity

    def get(self, seconds: float | None = None) -> T | None:
        """Wait for an item. Returns None once all are taken, or where the channel was aborted.

        Raises TimeoutError after `seconds`.
        """
        with self._changed:
            if not self._changed.wait_for(self._has_news, seconds):
                raise TimeoutError
            if self._aborted or not self._items:
                return None
            self._taken += 1
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def _has_news(self) -> bool:
        return self._aborted or bool(self._items) or self._taken == self._all

    def finish(self, items: int) -> None:
        """So many items come in all: once they are taken, nothing waits for more."""
        with self._changed:
            self._all = items
            self._changed.notify_all()

    def abort(self) -> None:
        """Wake all waiting threads and drop the items."""
        with self._changed:
            self._aborted = True
            self._items.clear()
            self._changed.notify_all()


@dataclass(frozen=True)
class Request:
    """A frame. `number`: of its model, from 0; `at_s`: when it comes, from the start of the run.

    One of 0 s comes as soon as there is room for it.
    """

    model: int
    number: int
    at_s: float = 0.0


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
    entered: float
    queued: float
    stage: int = 0


@dataclass
class DeviceRunner:
    """`stages`: of each model; `devices`: the device of each; `outputs`: names, by model.

    `capacity`: frames that a queue holds; None for any number. A device whose stage is at one frame
    beyond its limit is considered hung, and abandoned. `word`: what errors call a frame.
    """

    stages: Sequence[Sequence[StageRunner]]
    devices: Sequence[Sequence[int]]
    outputs: Sequence[Sequence[str]]
    capacity: int | None = None
    word: str = "request"
    by_device: dict[int, StageTimes] = field(default_factory=dict)
    times: RunTimes = field(default_factory=lambda: RunTimes([]))

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        used = sorted({device for path in self.devices for device in path})
        self.by_device = {device: StageTimes() for device in used}
        self.times = RunTimes(list(self.by_device.values()))

    def run(self, coming: Iterable[tuple[Request, Tensors]]) -> Iterator[Answer]:
        """Answers as they come; requests are taken only as fast as there is room.

        Closing the iterator stops all threads and waits for them. Raises StageError naming the
        stage that failed, InputError for one that this machine does not end within its limit, and
        whatever `coming` raises.
        """
        self._begin()
        run = _Run(self)
        threads = [threading.Thread(target=run.feed, args=(coming,), name="feed", daemon=True)]
        threads += [
            threading.Thread(target=run.serve, args=(device,), name=f"device {device}", daemon=True)
            for device in self.by_device
        ]
        for thread in threads:
            thread.start()
        try:
            yield from run.answers()
        finally:
            run.abort()
            for device, thread in zip((None, *self.by_device), threads, strict=True):
                while thread.is_alive() and not run.hangs(device):
                    thread.join(timeout=0.1)
        if run.failures:
            raise run.failures[0]


class _Run:
    """The queues of one run, and what its threads do."""

    def __init__(self, runner: DeviceRunner) -> None:
        self._runner = runner
        self._queues: dict[int, Channel[_Work]] = {
            device: Channel(runner.capacity) for device in runner.by_device
        }
        self._done: Channel[tuple[_Work, Answer]] = Channel(runner.capacity)
        self._stopped = threading.Event()
        self._begun: dict[int, tuple[float, StageRunner, _Work]] = {}
        self._needed: list[list[frozenset[str]]] = []
        for stages, outputs in zip(runner.stages, runner.outputs, strict=True):
            later = [
                {name for stage in stages[k + 1 :] for name in stage.inputs}
                for k in range(len(stages))
            ]
            self._needed.append([frozenset(names | set(outputs)) for names in later])
        self.failures: list[BaseException] = []

    def abort(self, reason: BaseException | None = None) -> None:
        """Stop all threads."""
        if reason is not None:
            self.failures.append(reason)
        self._stopped.set()
        for channel in self._queues.values():
            channel.abort()
        self._done.abort()

    def hangs(self, device: int | None) -> bool:
        """Whether a device is at one frame for too long; the feed, None, never is."""
        begun = None if device is None else self._begun.get(device)
        if begun is None:
            return False
        since, stage, _ = begun
        return stage.limit is not None and time.perf_counter() - since > stage.limit.seconds

    def _stage(self, work: _Work) -> StageRunner:
        """The stage that a request is at."""
        return self._runner.stages[work.request.model][work.stage]

    def feed(self, coming: Iterable[tuple[Request, Tensors]]) -> None:
        begin, count = time.perf_counter(), 0
        try:
            for request, tensors in coming:
                wait_s = request.at_s - (time.perf_counter() - begin)
                if wait_s > 0 and self._stopped.wait(wait_s):
                    return
                now = time.perf_counter()
                first = self._queues[self._runner.devices[request.model][0]]
                if not first.put(_Work(request, dict(tensors), now, now)):
                    return
                count += 1
        except BaseException as error:  # handed to the caller's thread
            self.abort(error)
            return
        self._done.finish(count)

    def serve(self, device: int) -> None:
        times = self._runner.by_device[device]
        while (work := self._queues[device].get()) is not None:
            model, number = work.request.model, work.stage
            stage = self._stage(work)
            taken = time.perf_counter()
            times.queue_ms += 1e3 * (taken - work.queued)
            self._begun[device] = taken, stage, work
            try:
                outputs, transfer_ms = stage.invoke(work.tensors)
            except InputError as error:
                self.abort(error)
                return
            except BaseException as error:  # handed to the caller's thread
                self.abort(self._failure(work, str(error) or type(error).__name__, error))
                return
            finally:
                del self._begun[device]
            done = time.perf_counter()
            busy_ms = 1e3 * (done - taken)
            times.frames += 1
            times.busy_ms += busy_ms
            times.transfer_ms += transfer_ms
            times.slowest_ms = max(times.slowest_ms, busy_ms)
            merged, needed = {**work.tensors, **outputs}, self._needed[model][number]
            work.tensors = {name: merged[name] for name in merged if name in needed}
            work.queued, work.stage = done, number + 1
            if not self._pass_on(work):
                return
            times.blocked_ms += 1e3 * (time.perf_counter() - done)

    def _pass_on(self, work: _Work) -> bool:
        """To the device of its next stage, or out; False where the run was stopped."""
        devices = self._runner.devices[work.request.model]
        if work.stage < len(devices):
            return self._queues[devices[work.stage]].put(work)
        names = self._runner.outputs[work.request.model]
        outputs = tuple(work.tensors[name] for name in names)
        latency_ms = 1e3 * (work.queued - work.entered)
        return self._done.put((work, Answer(work.request, outputs, latency_ms)))

    def _failure(self, work: _Work, reason: str, cause: BaseException | None) -> StageError:
        stage = self._stage(work)
        told = f"{self._runner.word} {work.request.number}: {reason}" if cause else reason
        failure = StageError(work.stage, stage.name, told)
        failure.__cause__ = cause
        return failure

    def answers(self) -> Iterator[Answer]:
        times, begin = self._runner.times, 0.0
        while (ended := self._next()) is not None:
            work, answer = ended
            now = time.perf_counter()
            times.frames += 1
            times.latency_ms += 1e3 * (now - work.entered)
            if times.frames == 1:
                times.first_ms = 1e3 * (now - work.entered)
                begin = now
            times.span_ms = 1e3 * (now - begin)
            yield answer

    def _next(self) -> tuple[_Work, Answer] | None:
        limits = (stage.limit for stages in self._runner.stages for stage in stages)
        shortest_s = min((limit.seconds for limit in limits if limit), default=None)
        while True:
            try:
                return self._done.get(shortest_s and shortest_s / 10)
            except TimeoutError:
                for device, (_, stage, work) in list(self._begun.items()):
                    if stage.limit is not None and self.hangs(device):
                        self.abort(self._silence(work, stage.name, stage.limit))

    def _silence(self, work: _Work, name: str, limit: Limit) -> ThimbleError:
        """The error of a stage that hangs."""
        if limit.of_stick:
            reason = f"no answer for {limit.seconds:g} s; was it unplugged?"
            return self._failure(work, reason, None)
        named = f"{self._runner.word} {work.request.number} in stage {work.stage} ({name})"
        return too_slow(named, limit.seconds)


class Pipeline:
    """Stages joined by queues of `capacity` frames (Google's runner: one)."""

    def __init__(
        self,
        stages: Sequence[StageRunner],
        outputs: Sequence[str],
        capacity: int = 1,
    ) -> None:
        devices = range(len(stages))
        self._runner = DeviceRunner([stages], [devices], [outputs], max(1, capacity), "frame")

    @property
    def times(self) -> RunTimes:
        return self._runner.times

    def run(self, frames: Iterable[Tensors]) -> Iterator[tuple[Array, ...]]:
        """Results in the order of the frames; otherwise as `DeviceRunner.run`."""
        coming = ((Request(0, number), tensors) for number, tensors in enumerate(frames))
        with closing(self._runner.run(coming)) as answers:  # type: ignore[type-var]
            for answer in answers:
                yield answer.outputs
