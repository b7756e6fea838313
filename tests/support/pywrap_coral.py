"""`_pywrap_coral` as libcoral's C++ behaves, over LiteRT interpreters: queues, locks, buffers.

Read from libcoral 6589d0b (coral/pipeline/) and pycoral 46f06c8 (src/coral_wrapper.cc); the line
numbers are theirs. What ends the process there (CHECK, abort) raises `CheckFailed` here, and is
kept in `failed`. pycoral 1.0's wrapper (release-frogfish) has lists for dicts, and a boolean.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

interpreters: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""Every interpreter by its `_native_handle()`; whoever makes one puts it here."""
failed: list[str] = []
live_buffers: list[_Buffer] = []


class CheckFailed(BaseException):
    """glog's CHECK: the process would end here."""


def check(holds: bool, text: str) -> None:
    if not holds:
        failed.append(text)
        raise CheckFailed(text)


class _Buffer:
    """Memory, and which allocator owns it."""

    def __init__(self, data: bytes, owner: str) -> None:
        self.data, self.owner = data, owner
        live_buffers.append(self)

    def free(self, owner: str) -> None:
        # MemoryPoolAllocator::Free casts what it is given: memory_pool_allocator.h:85
        check(self.owner == owner, f"a buffer of the {self.owner} is freed as {owner}")
        check(self in live_buffers, "a buffer is freed twice")
        live_buffers.remove(self)


class _Tensor:
    def __init__(self, buffer: _Buffer, consumers: int) -> None:
        self.buffer, self.consumers = buffer, consumers


_Map = dict[str, _Tensor]


class _WaitQueue:
    """thread_safe_queue.h: StopWaiters wakes Wait (186-190), and nobody who waits in push (106)."""

    def __init__(self) -> None:
        self._items: deque[_Map] = deque()
        self._most: float = float("inf")
        self._stopped = False
        self._changed = threading.Condition()

    def set_max_queue_size(self, size: int) -> None:
        with self._changed:
            self._most = size
            self._changed.notify_all()

    def push(self, item: _Map) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._items) < self._most)
            self._items.append(item)
            self._changed.notify_all()

    def wait(self) -> _Map | None:
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._stopped)
            if not self._items:
                return None
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def stop_waiters(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class _Mutex:
    """absl::Mutex: readers together, or one writer."""

    def __init__(self) -> None:
        self._readers, self._writer = 0, False
        self._changed = threading.Condition()

    def lock_shared(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._writer)
            self._readers += 1

    def unlock_shared(self) -> None:
        with self._changed:
            self._readers -= 1
            self._changed.notify_all()

    def lock(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._writer and not self._readers)
            self._writer = True

    def unlock(self) -> None:
        with self._changed:
            self._writer = False
            self._changed.notify_all()


class _Segment:
    """SegmentRunner: its loop is segment_runner.cc:195-264."""

    def __init__(
        self,
        interpreter: Any,
        counts: dict[str, int],
        queues: tuple[_WaitQueue, _WaitQueue],
        owners: tuple[str, str],
    ) -> None:
        self._interpreter, self._counts = interpreter, counts
        self._inputs = {d["name"]: d for d in interpreter.get_input_details()}
        self._outputs = {d["name"]: d for d in interpreter.get_output_details()}
        self._source, self._target = queues
        self._in_owner, self._out_owner = owners
        self.status: str | None = None

    def run(self) -> None:
        while (tensors := self._source.wait()) is not None:
            outputs: _Map = {}
            status = self._once(tensors, outputs) if tensors else "Empty input tensor map."
            for name, tensor in tensors.items():
                if name in self._inputs:
                    tensor.consumers -= 1
                if tensor.consumers == 0:
                    tensor.buffer.free(self._in_owner)
            if status is not None:
                self.status = status
                self._target.push({})
                return
            for name, tensor in outputs.items():
                tensor.consumers = self._counts.get(name, 0)
            for name, tensor in tensors.items():
                if tensor.consumers > 0:
                    outputs.setdefault(name, tensor)
            self._target.push(outputs)

    def _once(self, tensors: _Map, outputs: _Map) -> str | None:
        """Results into `outputs`; the text of an error."""
        for name, detail in self._inputs.items():
            check(name in tensors, f"input {name} is not in the map (segment_runner.cc:136)")
            data, shape = tensors[name].buffer.data, tuple(detail["shape"])
            if len(data) != int(np.prod(shape)) * np.dtype(detail["dtype"]).itemsize:
                return f"Input tensor {name} of {len(data)} bytes"
            array = np.frombuffer(data, detail["dtype"]).reshape(shape)
            self._interpreter.set_tensor(detail["index"], array)
        try:
            self._interpreter.invoke()
        except RuntimeError as error:
            return str(error)
        for name, detail in self._outputs.items():
            made = self._interpreter.get_tensor(detail["index"])
            outputs[name] = _Tensor(_Buffer(made.tobytes(), self._out_owner), 0)
        return None


class PipelinedModelRunnerWrapper:
    """pipelined_model_runner.cc behind coral_wrapper.cc:449-520."""

    def __init__(self, handles: list[int]) -> None:
        self._interpreters = [interpreters[handle] for handle in handles]
        last = len(handles) - 1
        self._queues = [_WaitQueue() for _ in range(last + 2)]
        for between in self._queues[1:-1]:
            between.set_max_queue_size(1)
        self._in = [{d["name"] for d in i.get_input_details()} for i in self._interpreters]
        for k in range(last):
            for detail in self._interpreters[k].get_output_details():
                check(
                    any(detail["name"] in later for later in self._in[k + 1 :]),
                    f"{detail['name']} must be consumed by a subsequent segment (92)",
                )
        self._counts: dict[str, int] = {}
        for names in self._in:
            for name in names:
                self._counts[name] = self._counts.get(name, 0) + 1
        self._segments = [
            _Segment(
                interpreter,
                self._counts,
                (self._queues[k], self._queues[k + 1]),
                ("input allocator" if k == 0 else "pool", "caller" if k == last else "pool"),
            )
            for k, interpreter in enumerate(self._interpreters)
        ]
        self._mutex = _Mutex()
        self._on = True
        self._threads = [
            threading.Thread(target=segment.run, daemon=True, name=f"segment {k}")
            for k, segment in enumerate(self._segments)
        ]
        for thread in self._threads:
            thread.start()

    def SetInputQueueSize(self, size: int) -> None:  # noqa: N802
        self._queues[0].set_max_queue_size(size)

    def SetOutputQueueSize(self, size: int) -> None:  # noqa: N802
        self._queues[-1].set_max_queue_size(size)

    def Push(self, tensors: Any) -> Any:  # noqa: N802
        """2.0: a dict, RuntimeError. 1.0: a list, True or False, and no look at the segments."""
        listed = isinstance(tensors, list)
        pushed = self._push_list(tensors) if listed else list(tensors.items())
        status = self._push(pushed, listed)
        if listed:
            return status is None
        if status is not None:
            raise RuntimeError(status)
        return None

    def _push_list(self, tensors: list[Any]) -> list[tuple[str, Any]]:
        details = self._interpreters[0].get_input_details()
        check(not tensors or len(tensors) == len(details), "inputs().size() (178)")
        return [(d["name"], t) for d, t in zip(details, tensors, strict=False)]

    def _push(self, tensors: list[tuple[str, Any]], listed: bool) -> str | None:
        status = None if listed else self._status()
        if status is not None:
            self._shut_down()
            return status
        if not tensors:
            return self._shut_down()
        details = self._interpreters[0].get_input_details()
        check(len(tensors) == len(details), "inputs().size() (178)")
        managed: _Map = {}
        for (name, array), detail in zip(tensors, details, strict=True):
            check(name == detail["name"], f"{name} is pushed as {detail['name']} (182)")
            # memcpy from the array's first byte, whatever its strides: coral_wrapper.cc:478
            flat = np.lib.stride_tricks.as_strided(array, (array.size,), (array.itemsize,))
            managed[name] = _Tensor(_Buffer(flat.tobytes(), "input allocator"), self._counts[name])
        self._mutex.lock_shared()  # held while the queue is full (189-191)
        try:
            if not self._on:
                return "Pipeline was turned off before."
            self._queues[0].push(managed)
            return None
        finally:
            self._mutex.unlock_shared()

    def Pop(self) -> Any:  # noqa: N802
        tensors = self._queues[-1].wait()
        if tensors is None:
            return None
        status = self._status()
        if status is not None:
            self._shut_down()
            raise RuntimeError(status)
        details = self._interpreters[-1].get_output_details()
        check(len(tensors) == len(details), "outputs().size() (223)")
        result = {}
        for detail in details:
            tensor = tensors[detail["name"]]
            check(tensor.consumers == 0, f"{detail['name']} has consumers (230)")
            tensor.buffer.free("caller")
            result[detail["name"].encode().decode("latin-1")] = _returned(tensor, detail["dtype"])
        return result

    def _shut_down(self) -> str | None:
        self._mutex.lock()
        try:
            if not self._on:
                return "Pipeline was turned off before."
            for source, thread in zip(self._queues, self._threads, strict=False):
                source.stop_waiters()
                thread.join()
            self._queues[-1].stop_waiters()
            self._on = False
            return None
        finally:
            self._mutex.unlock()

    def _status(self) -> str | None:
        for k, segment in enumerate(self._segments):
            if segment.status is not None:
                return f"Segment {k} runner error: {segment.status}"
        return None

    def __del__(self) -> None:
        if getattr(self, "_on", False):
            self._shut_down()


class FirstRunnerWrapper(PipelinedModelRunnerWrapper):
    """release-frogfish: results in a list, a failing Invoke a CHECK (segment_runner.cc:131)."""

    def Pop(self) -> Any:  # noqa: N802
        result = super().Pop()
        return None if result is None else list(result.values())

    def _status(self) -> str | None:
        for segment in self._segments:
            check(segment.status is None, f"Invoke: {segment.status}")
        return None


def _returned(tensor: _Tensor, dtype: Any) -> Any:
    """coral_wrapper.cc:513-516: as many elements as there are bytes, a byte apart."""
    data, kind = tensor.buffer.data, np.dtype(dtype)
    room = np.frombuffer(data + bytes(kind.itemsize), np.uint8)[: len(data)]
    return np.ndarray((len(data),), kind, room.tobytes() + bytes(kind.itemsize), strides=(1,))


def _absent(*_: Any) -> None:
    raise RuntimeError("no Edge TPU is behind this stand-in")


InvokeWithBytes: Callable[..., None] = _absent
InvokeWithDmaBuffer: Callable[..., None] = _absent
InvokeWithMemBuffer: Callable[..., None] = _absent
SupportsDmabuf: Callable[..., None] = _absent
ListEdgeTpus: Callable[..., None] = _absent
SetVerbosity: Callable[..., None] = _absent
GetRuntimeVersion: Callable[..., None] = _absent
