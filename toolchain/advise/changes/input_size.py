"""A smaller input image: three quarters, two thirds and half of its height and width."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from toolchain.advise.change import Change, Proposal
from toolchain.advise.surgery import CannotChangeError, Draft
from toolchain.boards import Core
from toolchain.ir import Graph

_SHARES = ((3, 4), (2, 3), (1, 2))
_LEAST_PIXELS = 16


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    for name in graph.inputs:
        shape = graph.tensors[name].shape
        if len(shape) != 4 or min(shape[1:3]) < _LEAST_PIXELS:
            continue
        readers = [graph.ops[i].name for i in graph.consumers[name]]
        for part, whole in _SHARES:
            if any(size * part % whole for size in shape[1:3]):
                continue
            height, width = (size * part // whole for size in shape[1:3])
            with contextlib.suppress(CannotChangeError):
                smaller = (shape[0], height, width, shape[3])
                yield Proposal(
                    readers[0] if readers else name,
                    f"input {name} {shape[1]}x{shape[2]} -> {height}x{width}",
                    Draft.of(graph).settled(sizes={name: smaller}),
                    f"keras.Input(({height}, {width}, {shape[3]})) and data resized to it",
                    f"torch.zeros(1, {shape[3]}, {height}, {width}) in torch.onnx.export, and data "
                    "resized to it",
                )


CHANGE = Change("a smaller input image", _proposals)
