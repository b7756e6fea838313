"""Tries the Edge TPU's software in a separate process, because a mismatch there ends the process.

`python -m toolchain.edgetpu.run.probe '{...}'` does what the JSON object says (`steps`). It prints
a line of JSON to stdout before each step, and `error` or `done` at the end. It imports nothing of
Thimble.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import sys
from pathlib import Path
from typing import Any

_USB = 1


def _tell(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def _interpreter(given: dict[str, Any]) -> Any:
    if given["module"] == "pycoral":
        _tell(step="open the stick")
        module = importlib.import_module("pycoral.utils.edgetpu")
        return module.make_interpreter(given["model"], given["device"] or None)
    module = importlib.import_module(given["module"])
    _tell(step="open the stick")
    options = {"device": given["device"]} if given["device"] else {}
    delegate = module.load_delegate(given["library"], options)
    _tell(step="load a stage")
    return module.Interpreter(model_path=given["model"], experimental_delegates=[delegate])


def _run(given: dict[str, Any]) -> None:
    """One frame of zeros through one stage, as the back end does it."""
    import numpy as np

    with contextlib.suppress(ImportError):  # its library is loaded where the back end runs, too
        importlib.import_module("ai_edge_litert")
    interpreter = _interpreter(given)
    _tell(step="prepare a stage")
    interpreter.allocate_tensors()
    _tell(step="run a stage")
    details = interpreter.get_input_details()
    if given["module"] != "pycoral":
        for detail in details:
            interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
        interpreter.invoke()
        return
    name = "pycoral.pipeline.pipelined_model_runner"
    runner = importlib.import_module(name).PipelinedModelRunner([interpreter])
    zeros = {d["name"]: np.zeros(d["shape"], d["dtype"]) for d in details}
    lists = isinstance(getattr(runner, "_input_types", None), list)
    runner.push(list(zeros.values()) if lists else zeros)
    runner.pop()
    runner.push([] if lists else {})
    runner._runner = None


class _Device(ctypes.Structure):
    """`struct edgetpu_device` of edgetpu_c.h."""

    _fields_ = (("type", ctypes.c_int), ("path", ctypes.c_char_p))


def _library(given: dict[str, Any]) -> None:
    """Tell the library's version and its sticks; `wake` gives them all their firmware."""
    _tell(step="load the library")
    library = ctypes.CDLL(given["library"])
    library.edgetpu_version.restype = ctypes.c_char_p
    _tell(version=library.edgetpu_version().decode(errors="replace"))
    _tell(step="list the sticks")
    sticks = _sticks(library)
    if given.get("wake"):
        for kind, path in sticks:
            if kind == _USB and _asleep(path):
                _tell(step=f"give {path.decode()} its firmware")
                _wake(library, path)
        sticks = _sticks(library)
    _tell(sticks=[f"{('pci', 'usb')[kind]} {path.decode()}" for kind, path in sticks])


def _sticks(library: ctypes.CDLL) -> list[tuple[int, bytes]]:
    library.edgetpu_list_devices.restype = ctypes.POINTER(_Device)
    count = ctypes.c_size_t(0)
    listed = library.edgetpu_list_devices(ctypes.byref(count))
    return [(listed[k].type, listed[k].path) for k in range(count.value)]


def _asleep(path: bytes) -> bool:
    """Whether a stick has no firmware yet: its vendor then is 1a6e, else 18d1.

    Only Linux tells. One that has it may be in use, and opening it would reset it.
    """
    try:
        return Path(path.decode(), "idVendor").read_text().strip() == "1a6e"
    except OSError:
        return False


def _wake(library: ctypes.CDLL, path: bytes) -> None:
    library.edgetpu_create_delegate.restype = ctypes.c_void_p
    library.edgetpu_create_delegate.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_size_t,
    )
    library.edgetpu_free_delegate.argtypes = (ctypes.c_void_p,)
    delegate = library.edgetpu_create_delegate(_USB, path, None, 0)
    if delegate:
        library.edgetpu_free_delegate(delegate)


def main(text: str) -> None:
    given = json.loads(text)
    try:
        (_run if "model" in given else _library)(given)
    except Exception as error:
        cause = error.__cause__  # where NumPy is too new, only the cause says so
        text = f"{error} ({cause})" if cause else str(error)
        _tell(error=text, kind=type(error).__name__)
        return
    _tell(done=True)


if __name__ == "__main__":
    main(sys.argv[1])
