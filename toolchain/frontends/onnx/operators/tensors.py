"""Values of a file's tensors, as operators without a kernel see and change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from toolchain.frontends.onnx.builder import GraphBuilder, Value
from toolchain.frontends.onnx.model import Array, Node
from toolchain.frontends.onnx.quantisation import Parameters
from toolchain.frontends.onnx.stored import Stored
from toolchain.ops.spec import OnnxData


class Tensors(Protocol):
    """See `values.Values`."""

    constants: dict[str, OnnxData]
    stored: dict[str, Stored]

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    @property
    def file_constants(self) -> Mapping[str, Array]: ...

    @property
    def builder(self) -> GraphBuilder: ...

    def value(self, node: Node, index: int) -> Value: ...

    def define(self, name: str, value: Value) -> None: ...

    def parameters(self, node: Node) -> Parameters: ...

    def is_used(self, name: str) -> bool: ...
