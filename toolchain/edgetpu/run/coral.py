"""Google's PipelinedModelRunner over compiled stages: pycoral 2.0's interface, and 1.0's.

Checked against the sources of pycoral and libcoral (`docs/edgetpu-known.md` names commits and
lines); not run on hardware.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import queue
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolchain.edgetpu.run.folder import ModelStages, PipelineFolder
from toolchain.edgetpu.run.interpreters import opened
from toolchain.edgetpu.run.runner import StageError, Tensors
from toolchain.errors import InputError, MissingToolError, ResultError
from toolchain.ops.spec import Array

RUNNER_MODULE = "pycoral.pipeline.pipelined_model_runner"
SILENCE_S = 30.0
"""The runner is considered hung after this many seconds with frames in progress and no result."""
_GET_PYCORAL = (
    "install pycoral 2.0.3 from https://github.com/feranick/pycoral/releases (Google's own wheels "
    "end with Python 3.9), with the tflite_runtime and the libedgetpu of the same TensorFlow"
)
_SEGMENT = re.compile(r"Segment (\d+) runner error: (.*)", re.DOTALL)


def pycoral_runner() -> Any:
    """Google's class PipelinedModelRunner. Raises MissingToolError if it is not installed."""
    if importlib.util.find_spec("pycoral") is None:
        raise MissingToolError(f"pycoral is not installed; {_GET_PYCORAL}")
    try:
        return importlib.import_module(RUNNER_MODULE).PipelinedModelRunner
    except (ImportError, AttributeError) as error:
        raise MissingToolError(
            f"the package 'pycoral' that is installed has no pipeline.pipelined_model_runner that "
            f"can be loaded ({error}): the one on PyPI is another project of that name. pip "
            f"uninstall pycoral, then {_GET_PYCORAL}"
        ) from error


def check_fits(folder: PipelineFolder, outputs: Mapping[str, Any]) -> None:
    """Raise MissingToolError for a pipeline that pycoral cannot run.

    `outputs`: NumPy type of each output of the pipeline.
    """
    if len(folder.models) > 1:
        raise MissingToolError("PipelinedModelRunner takes one model at a time")
    for name, dtype in outputs.items():
        if np.dtype(dtype).itemsize != 1:
            raise MissingToolError(
                f"PipelinedModelRunner returns 8-bit outputs only, {name!r} is {np.dtype(dtype)}"
            )
        if not name.isascii():
            raise MissingToolError(f"PipelinedModelRunner garbles names beyond ASCII: {name!r}")


class PycoralPipeline:
    """A pipeline of one model on Google's runner, a stick for each stage.

    The number of frames in progress is limited here, not by the runner's queues: a runner whose
    input queue is full cannot report a stage that failed. Raises MissingToolError if a stick is
    missing, and InputError if a stage cannot be loaded or has other inputs or outputs than its
    model.
    """

    times = None

    def __init__(
        self, folder: PipelineFolder, devices: Sequence[str], silence_s: float = SILENCE_S
    ) -> None:
        self._class = pycoral_runner()
        edgetpu = importlib.import_module("pycoral.utils.edgetpu")
        self._model: ModelStages = folder.models[0]
        self._devices = tuple(devices)
        self._silence_s = silence_s
        self._interpreters = []
        for stage, device in zip(self._model.stages, devices, strict=True):
            self._interpreters.append(_open(edgetpu, folder.path / stage.compiled_file, device))
        self._inputs = {d["name"]: d for d in self._interpreters[0].get_input_details()}
        self._last = [d["name"] for d in self._interpreters[-1].get_output_details()]
        for ours, theirs in ((self._model.inputs, self._inputs), (self._model.outputs, self._last)):
            if set(ours) != set(theirs):
                raise InputError(
                    f"the compiled stages of {self._model.name} have {', '.join(theirs)} where "
                    f"{', '.join(ours)} were split; compile the stages again"
                )

    def run(self, frames: Iterable[Tensors]) -> Iterator[tuple[Array, ...]]:
        """Results in order. Closing the iterator drains the frames in progress.

        Raises StageError naming the stick that failed, ResultError if the runner hangs or ends
        early, InputError for a frame that does not fit, and whatever the iterator of frames raises.
        """
        try:
            runner = self._class(self._interpreters)
        except ValueError as error:
            raise InputError(
                f"the compiled stages of {self._model.name} do not fit together ({error}); compile "
                "them again"
            ) from error
        flow = _Flow(runner, self._last, len(self._interpreters), self._silence_s)
        flow.start(self._tensors(frame) for frame in frames)
        try:
            for result in flow.results():
                yield tuple(result[name] for name in self._model.outputs)
        except _RunnerError as error:
            raise self._failure(str(error)) from error
        finally:
            flow.close()

    def _tensors(self, frame: Tensors) -> dict[str, Array]:
        """A frame in the order of the first interpreter's inputs, each in one piece of memory.

        The runner ends the process for another order, and copies without regard to strides or
        shape: pipelined_model_runner.cc:182, coral_wrapper.cc:475-479.
        """
        for name in frame:
            if name not in self._inputs:
                names = ", ".join(self._inputs)
                raise InputError(f"the model has no input {name!r}; it has {names}")
        tensors = {}
        for name, detail in self._inputs.items():
            if name not in frame:
                raise InputError(f"the frame lacks input {name!r}")
            array, shape = np.asarray(frame[name]), tuple(int(n) for n in detail["shape"])
            if array.dtype != detail["dtype"] or array.shape != shape:
                raise InputError(
                    f"input {name!r} is {array.dtype} {list(array.shape)}, the model takes "
                    f"{np.dtype(detail['dtype'])} {list(shape)}"
                )
            tensors[name] = np.ascontiguousarray(array)
        return tensors

    def _failure(self, reason: str) -> Exception:
        told = _SEGMENT.match(reason)
        if told is None:
            return ResultError(f"PipelinedModelRunner failed: {reason}")
        stage = int(told[1])
        return StageError(stage, self._devices[stage], told[2].strip())


def _open(edgetpu: Any, path: Path, device: str) -> Any:
    """pycoral's interpreter on a stick. Raises MissingToolError or InputError where that fails."""
    try:
        interpreter = opened(lambda: edgetpu.make_interpreter(str(path), device), device)
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{path} cannot be prepared on {device}: {error}") from error
    return interpreter


class _RunnerError(Exception):
    """An error that Google's runner raised, or should have."""


class _Flow:
    """One run of Google's runner: a thread pushes, a thread pops, the caller waits on neither."""

    def __init__(self, runner: Any, outputs: Sequence[str], stages: int, silence_s: float) -> None:
        self._runner = runner
        # 1.0 keeps the types of the inputs in a list, 2.0 in a dict: the one trace that the
        # change from lists to dicts leaves before the first call (pipelined_model_runner.py:72)
        self._lists = isinstance(getattr(runner, "_input_types", None), list)
        self._outputs = outputs
        self._silence_s = silence_s
        # as many as the runner itself holds with queues of one: pipelined_model_runner_test.py:188
        self._room = threading.Semaphore(2 * stages + 1)
        self._stop = threading.Event()
        self._popped: queue.SimpleQueue[dict[str, Array] | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()
        self._under_way = 0
        self._since = 0.0
        self._threads: list[threading.Thread] = []

    def start(self, frames: Iterator[dict[str, Array]]) -> None:
        self._threads = [
            threading.Thread(target=self._feed, args=(frames,), name="feed", daemon=True),
            threading.Thread(target=self._drain, name="drain", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def results(self) -> Iterator[dict[str, Array]]:
        """Raises what pushing, popping or the frames raised, ResultError after a long silence."""
        while True:
            try:
                item = self._popped.get(timeout=min(1.0, self._silence_s))
            except queue.Empty:
                if self._hangs():
                    raise ResultError(
                        f"PipelinedModelRunner gave no result for {self._silence_s:g} s: libcoral "
                        "hangs where a stage behind the first fails, and its log on the terminal "
                        "names the stage; is a stick unplugged? --backend delegate names it itself"
                    ) from None
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            self._room.release()
            yield item

    def close(self) -> None:
        """Drain what is under way and let the runner go; a runner that hangs is left behind."""
        self._stop.set()
        self._room.release()
        for thread in self._threads:
            while thread.is_alive() and not self._hangs():
                thread.join(timeout=0.05)
        if not any(thread.is_alive() for thread in self._threads):
            # its __del__ prints to stdout, and pushes to a pipeline that is off already
            self._runner._runner = None

    def _hangs(self) -> bool:
        with self._lock:
            return bool(self._under_way) and time.monotonic() - self._since > self._silence_s

    def _count(self, change: int) -> None:
        with self._lock:
            if change < 0 or not self._under_way:
                self._since = time.monotonic()
            self._under_way += change

    def _feed(self, frames: Iterator[dict[str, Array]]) -> None:
        try:
            while self._room.acquire() and not self._stop.is_set():
                tensors = next(frames, None)
                if tensors is None:
                    break
                self._count(1)
                self._push(tensors)
        except BaseException as error:  # handed to the caller's thread
            self._popped.put(error)
        with contextlib.suppress(RuntimeError):  # off already: what turned it off was told
            self._runner.push([] if self._lists else {})

    def _push(self, tensors: dict[str, Array]) -> None:
        try:
            taken = self._runner.push(list(tensors.values()) if self._lists else tensors)
        except RuntimeError as error:
            raise _RunnerError(str(error)) from error
        if self._lists and not taken:
            raise _RunnerError("the pipeline was turned off")

    def _drain(self) -> None:
        try:
            while (result := self._runner.pop()) is not None:
                self._count(-1)
                self._popped.put(
                    dict(zip(self._outputs, result, strict=True)) if self._lists else result
                )
        except RuntimeError as error:
            self._popped.put(_RunnerError(str(error)))
            return
        except BaseException as error:  # handed to the caller's thread
            self._popped.put(error)
            return
        with self._lock:
            lost = self._under_way
        self._popped.put(_RunnerError(f"it ended with {lost} frames under way") if lost else None)
