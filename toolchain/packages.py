"""Python packages that are imported when they are first used, and extras that bring them.

Importing ortools takes half a second, and most commands never use it. A module that uses such a
package names it twice, once for type checkers:

    if TYPE_CHECKING:
        import onnx
    else:
        onnx = lazy("onnx", ONNX)
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any

from toolchain.errors import MissingToolError
from toolchain.version import DISTRIBUTION


@dataclass(frozen=True)
class Extra:
    """An optional part of the installation: its name in `pyproject.toml` and what it is for.

    `packages`: the modules that it brings.
    """

    name: str
    purpose: str
    packages: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """The command that installs it."""
        return f"pip install '{DISTRIBUTION}[{self.name}]'"

    @property
    def missing(self) -> tuple[str, ...]:
        """Its packages that are not installed, or that another one keeps from being used."""
        return tuple(
            name for name in self.packages if not _is_installed(name) or _is_kept_out(name)
        )

    @property
    def absence(self) -> str:
        """The reason why its packages are missing, and a remedy, to follow their name."""
        kept = next((name for name in self.packages if _is_kept_out(name)), "")
        if kept:
            return f"is not used behind {_KEPT_OUT_BY[kept]}: import {kept} before it"
        return f"is not installed: {self.remedy}"

    def lacks(self, package: str) -> MissingToolError:
        """The error for a package of it that is not installed."""
        return MissingToolError(f"the package {package} is missing ({self.purpose}): {self.remedy}")


_KEPT_OUT_BY = MappingProxyType({"ortools": "tensorflow"})
"""Packages that end the process by a signal where another one was imported before them."""


def _is_kept_out(package: str) -> bool:
    return _KEPT_OUT_BY.get(package) in sys.modules and package not in sys.modules


@cache
def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


ONNX = Extra("onnx", "read ONNX models", ("onnx",))
VERIFY = Extra("verify", "compare with LiteRT and ONNX Runtime", ("ai_edge_litert", "onnxruntime"))
QUANTIZE = Extra("quantize", "float ONNX models to int8", ("onnx", "onnxruntime"))
SOLVER = Extra("solver", "CP-SAT, where Thimble's own searches stop", ("ortools",))
EDGETPU = Extra("edgetpu", "pipelines of Coral Edge TPUs", ("ai_edge_litert", "ortools"))
REPORT = Extra("report", "pages: charts", ("vl_convert",))
IMAGES = Extra("images", "read PNG, JPEG and BMP files", ("PIL",))
DASK = Extra("dask", "sweeps on the workers of a Dask cluster", ("distributed",))
BENCH = Extra("bench", "tests on boards: thimble hil, and your own", ("pytest",))
TORCH = Extra(
    "torch", "compile PyTorch models from a training script", ("torch", "onnx", "onnxruntime")
)
KERAS = Extra("keras", "compile Keras models from a training script", ("tensorflow",))
EXTRAS = (ONNX, VERIFY, QUANTIZE, SOLVER, EDGETPU, REPORT, IMAGES)
APART = (TORCH, KERAS, DASK, BENCH)
"""Not part of `all`: whoever needs them has the framework, the cluster, or boards."""


class _Lazy(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __init__(self, name: str, extra: Extra | None) -> None:
        super().__init__(name)
        self._extra = extra

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python itself asks of a module
            raise AttributeError(name)
        return getattr(self._module(), name)

    def _module(self) -> ModuleType:
        try:
            return importlib.import_module(self.__name__)
        except ModuleNotFoundError as error:
            package = self.__name__.partition(".")[0]
            if self._extra is None or error.name != package:
                raise
            raise self._extra.lacks(package) from error


def lazy(name: str, extra: Extra | None = None) -> Any:
    """The module `name`, imported when something of it is first used.

    That raises MissingToolError, which says how to get it, where `extra` is not installed.
    """
    return _Lazy(name, extra)
