"""Reference runtimes in a separate process, which may crash or hang without harm.

One process serves one reference; it starts in a tenth of a second.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from toolchain.device.patience import RUN_SECONDS, stopped_after, too_slow
from toolchain.errors import InputError
from toolchain.ops.spec import Array
from toolchain.reference import child


class Runtime(Enum):
    """A runtime, by the name that its process uses."""

    LITERT_REFERENCE = "BUILTIN_REF"
    LITERT_DEFAULT = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    TFLITE_MICRO = "tflite-micro"
    ONNX_RUNTIME = "onnxruntime"

    @property
    def title(self) -> str:
        return _TITLES[self]


_TITLES = {
    Runtime.LITERT_REFERENCE: "LiteRT's reference kernels",
    Runtime.LITERT_DEFAULT: "LiteRT's default kernels",
    Runtime.TFLITE_MICRO: "tflite-micro",
    Runtime.ONNX_RUNTIME: "ONNX Runtime, its optimiser off",
}


class RefusedError(Exception):
    """The runtime raised an error; the text is its message. The process still runs."""


class NotInstalledError(RefusedError):
    """The runtime's package is missing."""


class RuntimeProcess:
    """A process that opens models and runs them. It ends with `close`, or when it is deleted."""

    def __init__(self, limit_seconds: float = RUN_SECONDS) -> None:
        self._limit_seconds = limit_seconds
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(child.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        self.close = weakref.finalize(self, _end, self._process, self._said)

    def ask(
        self, runtime: Runtime, message: dict[str, Any], parts: Sequence[bytes] = ()
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Send a request, and return its answer. Raises RefusedError; InputError where the runtime
        crashed, or took longer than the limit; its process is gone then.
        """
        source, target = self._process.stdout, self._process.stdin
        assert source is not None and target is not None
        with stopped_after(self._limit_seconds, self._process.kill) as expired:
            try:
                child.write_message(target, message, parts)
                reply, data = child.read_message(source)
            except (EOFError, OSError, ValueError) as error:
                self._process.kill()
                self._process.wait()
                if expired.is_set():
                    inference = f"{runtime.title}, the reference,"
                    raise too_slow(inference, self._limit_seconds) from error
                raise InputError(
                    f"{runtime.title} crashed on this file: no reference here can judge it"
                ) from error
        if "refused" in reply:
            raise (NotInstalledError if reply["missing"] else RefusedError)(reply["refused"])
        return reply, data


def _end(process: subprocess.Popen[bytes], said: Any) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # it crashed before it read all
                pipe.close()
    process.kill()
    process.wait()
    said.close()


@dataclass(frozen=True)
class OpenModel:
    """A model that a runtime has accepted."""

    process: RuntimeProcess
    runtime: Runtime
    handle: int

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Outputs in the file's order. Raises InputError where the runtime refuses the input."""
        heads, parts = child.packed(inputs)
        message = {"do": "run", "handle": self.handle, "arrays": heads}
        try:
            reply, data = self.process.ask(self.runtime, message, parts)
        except RefusedError as error:
            raise InputError(
                f"{self.runtime.title} cannot run the model on this input: {error}"
            ) from error
        return tuple(child.unpacked(reply["arrays"], data))

    def restart(self) -> None:
        """Reset what the model keeps from run to run."""
        try:
            self.process.ask(self.runtime, {"do": "restart", "handle": self.handle})
        except RefusedError as error:
            raise InputError(f"{self.runtime.title} cannot start again: {error}") from error


def open_model(
    process: RuntimeProcess, runtime: Runtime, model: bytes, outputs: int = 0
) -> OpenModel:
    """Open a model. `outputs`: their number, which tflite-micro does not report.

    Raises RefusedError where the runtime refuses the model, InputError where it crashes on it.
    """
    message = {"do": "open", "runtime": runtime.value, "outputs": outputs}
    reply, _ = process.ask(runtime, message, [model])
    return OpenModel(process, runtime, reply["handle"])
