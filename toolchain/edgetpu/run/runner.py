"""Thimble's own pipeline: a thread for each stage, bounded queues between them, frames in order.

A frame has its tensors by name. Tensors that a later stage needs travel along; the others are
dropped. A failing stage stops all stages, and the caller gets one error that names it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from toolchain.errors import ResultError
from toolchain.ops.spec import Array

T = TypeVar("T")
Tensors = Mapping[str, Array]


class StageError(ResultError):
    """A stage raised an error; `stage` counts from 0."""

    def __init__(self, stage: int, name: str, reason: str) -> None:
        super().__init__(f"stage {stage} ({name}) failed: {reason}")
        self.stage = stage


class StageRunner(Protocol):
    """Runs a stage. Only one thread calls `invoke`."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def outputs(self) -> tuple[str, ...]: ...

    def invoke(self, tensors: Tensors) -> tuple[dict[str, Array], float]:
        """Outputs by name, and the milliseconds that copying tensors in and out took."""


@dataclass
class StageTimes:
    """Milliseconds, summed over `frames` frames."""

    frames: int = 0
    busy_ms: float = 0.0
    transfer_ms: float = 0.0
    queue_ms: float = 0.0
    blocked_ms: float = 0.0
    slowest_ms: float = 0.0


@dataclass
class RunTimes:
    """The measurements of a run; complete once the last result is taken."""

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

    def __init__(self, capacity: int) -> None:
        self._items: deque[T] = deque()
        self._capacity = capacity
        self._finished = False
        self._aborted = False
        self._changed = threading.Condition()

    def put(self, item: T) -> bool:
        """Wait for room. Returns False if the channel was aborted; the item is then lost."""
        with self._changed:
            self._changed.wait_for(lambda: self._aborted or len(self._items) < self._capacity)
            if self._aborted:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def get(self, seconds: float | None = None) -> T | None:
        """Wait for an item. Returns None if the channel is finished and empty, or aborted.

        Raises TimeoutError after `seconds`.
        """
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._aborted or self._items or self._finished, seconds
            ):
                raise TimeoutError
            if self._aborted or not self._items:
                return None
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def finish(self) -> None:
        """No more items come; those inside can still be taken."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def abort(self) -> None:
        """Wake all waiting threads and drop the items."""
        with self._changed:
            self._aborted = True
            self._items.clear()
            self._changed.notify_all()


@dataclass
class _Frame:
    number: int
    tensors: dict[str, Array]
    entered: float
    queued: float = field(default=0.0)


class Pipeline:
    """Stages joined by channels of `capacity` frames (Google's runner: one).

    A stage that works on one frame for more than `patience_s` is considered hung, and abandoned.
    """

    def __init__(
        self,
        stages: Sequence[StageRunner],
        outputs: Sequence[str],
        capacity: int = 1,
        patience_s: float | None = None,
    ) -> None:
        self._stages = tuple(stages)
        self._outputs = tuple(outputs)
        self._capacity = max(1, capacity)
        self._patience_s = patience_s
        self._begun: list[float | None] = [None for _ in self._stages]
        self._needed: list[frozenset[str]] = []
        for index in range(len(self._stages)):
            later = {name for stage in self._stages[index + 1 :] for name in stage.inputs}
            self._needed.append(frozenset(later | set(self._outputs)))
        self.times = RunTimes([StageTimes() for _ in self._stages])

    def run(self, frames: Iterable[Tensors]) -> Iterator[tuple[Array, ...]]:
        """Results in the order of the frames; frames are taken only as fast as stages finish.

        Closing the iterator stops all threads and waits for them. Raises StageError naming the
        stage that failed, and whatever the iterator of frames raises.
        """
        self.times = RunTimes([StageTimes() for _ in self._stages])
        self._begun = [None for _ in self._stages]
        channels: list[Channel[_Frame]] = [
            Channel(self._capacity) for _ in range(len(self._stages) + 1)
        ]
        failures: list[BaseException] = []

        def abort(reason: BaseException | None = None) -> None:
            if reason is not None:
                failures.append(reason)
            for channel in channels:
                channel.abort()

        threads = [
            threading.Thread(
                target=self._feed, args=(frames, channels[0], abort), name="feed", daemon=True
            )
        ]
        for index in range(len(self._stages)):
            threads.append(
                threading.Thread(
                    target=self._work,
                    args=(index, channels[index], channels[index + 1], abort),
                    name=f"stage {index}",
                    daemon=True,
                )
            )
        for thread in threads:
            thread.start()
        try:
            yield from self._drain(channels[-1], abort)
        finally:
            abort()
            for index, thread in enumerate(threads, -1):
                while thread.is_alive() and not self._hangs(index):
                    thread.join(timeout=0.1 if self._patience_s else None)
        if failures:
            raise failures[0]

    def _hangs(self, index: int) -> bool:
        """Whether a stage is at one frame for too long; the feed, -1, never is."""
        begun = self._begun[index] if index >= 0 else None
        return bool(begun and self._patience_s and time.perf_counter() - begun > self._patience_s)

    def _next(self, channel: Channel[_Frame], abort: _Abort) -> _Frame | None:
        while True:
            try:
                return channel.get(self._patience_s and self._patience_s / 10)
            except TimeoutError:
                for index, stage in enumerate(self._stages):
                    if self._hangs(index):
                        reason = f"no answer for {self._patience_s:g} s; was it unplugged?"
                        abort(StageError(index, stage.name, reason))

    def _drain(self, channel: Channel[_Frame], abort: _Abort) -> Iterator[tuple[Array, ...]]:
        begin = last = 0.0
        while (frame := self._next(channel, abort)) is not None:
            now = time.perf_counter()
            self.times.frames += 1
            self.times.latency_ms += 1e3 * (now - frame.entered)
            if self.times.frames == 1:
                self.times.first_ms = 1e3 * (now - frame.entered)
                begin = now
            last = now
            self.times.span_ms = 1e3 * (last - begin)
            yield tuple(frame.tensors[name] for name in self._outputs)

    def _feed(self, frames: Iterable[Tensors], channel: Channel[_Frame], abort: _Abort) -> None:
        try:
            for number, tensors in enumerate(frames):
                now = time.perf_counter()
                if not channel.put(_Frame(number, dict(tensors), now, now)):
                    return
        except BaseException as error:  # handed to the caller's thread
            abort(error)
            return
        channel.finish()

    def _work(
        self, index: int, source: Channel[_Frame], target: Channel[_Frame], abort: _Abort
    ) -> None:
        stage, times, needed = self._stages[index], self.times.stages[index], self._needed[index]
        while (frame := source.get()) is not None:
            taken = time.perf_counter()
            times.queue_ms += 1e3 * (taken - frame.queued)
            self._begun[index] = taken
            try:
                outputs, transfer_ms = stage.invoke(frame.tensors)
            except BaseException as error:  # handed to the caller's thread
                reason = f"frame {frame.number}: {error or type(error).__name__}"
                failure = StageError(index, stage.name, reason)
                failure.__cause__ = error
                abort(failure)
                return
            finally:
                self._begun[index] = None
            done = time.perf_counter()
            busy_ms = 1e3 * (done - taken)
            times.frames += 1
            times.busy_ms += busy_ms
            times.transfer_ms += transfer_ms
            times.slowest_ms = max(times.slowest_ms, busy_ms)
            merged = {**frame.tensors, **outputs}
            frame.tensors = {name: merged[name] for name in merged if name in needed}
            frame.queued = done
            if not target.put(frame):
                return
            times.blocked_ms += 1e3 * (time.perf_counter() - done)
        target.finish()


class _Abort(Protocol):
    def __call__(self, reason: BaseException | None = None) -> None: ...
