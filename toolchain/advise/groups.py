"""Groups of tensors with one number of channels, because operators demand it of one another."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.advise.surgery import makes_channels
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.weighted import INPUT


@dataclass(frozen=True)
class ChannelGroup:
    """Operators that make the channels of one group of tensors, in the graph's order.

    Example: the convolutions at both sides of a skip connection.
    """

    makers: tuple[Op, ...]
    channels: int

    @property
    def name(self) -> str:
        """The layer, or the first with the number of the others."""
        more = f" (and {len(self.makers) - 1} tied to it)" if len(self.makers) > 1 else ""
        return f"{self.makers[0].name}{more}"


def channel_groups(graph: Graph) -> tuple[ChannelGroup, ...]:
    """The groups whose number of channels a network's author may choose: no input, output or state
    of the graph is in one, and filters alone make its tensors.
    """
    parents = {name: name for name in graph.tensors}

    def root(name: str) -> str:
        while parents[name] != name:
            name = parents[name]
        return name

    fixed = {*graph.sources, *graph.inputs, *graph.kept}
    for op in graph.ops:
        if makes_channels(op, graph):
            continue
        tied = _tied(op, graph)
        fixed |= {name for name in op.outputs if name not in tied}
        for name in tied[1:]:
            parents[root(name)] = root(tied[0])
    never = {root(name) for name in fixed}
    makers: dict[str, list[Op]] = {}
    for op in graph.ops:
        if makes_channels(op, graph) and root(op.outputs[0]) not in never:
            makers.setdefault(root(op.outputs[0]), []).append(op)
    return tuple(
        ChannelGroup(tuple(ops), graph.output(ops[0]).shape[-1]) for ops in makers.values()
    )


def _tied(op: Op, graph: Graph) -> list[str]:
    """The tensors of an operator that have the same channels; none where it makes other ones."""
    if isinstance(op.attributes, Concat | FullyConnected):
        return []
    moving = [n for n in op.present_inputs() if not graph.tensors[n].is_constant]
    names = [*moving, *op.outputs]
    shapes = [graph.tensors[name].shape for name in names]
    if not all(shapes) or len({shape[-1] for shape in shapes}) > 1:
        return []
    if isinstance(op.attributes, DepthwiseConv2D):
        return [op.inputs[INPUT], *op.outputs]
    return [] if isinstance(op.attributes, Reshape) and shapes[0][-1] == 1 else names
