"""A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND becomes a dilated convolution.

Older converters write dilation this way. Each image of the batch holds every d-th pixel, so a
kernel over adjacent pixels there is a kernel over every d-th pixel of the original image. Paddings
add up and crops are subtracted. Padding is real 0.0 in all three operators. Reshapes in between
(1-D convolutions) are removed too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import Graph, Op, Tensor
from toolchain.ops import spec_of
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.movement.batch_blocks import BatchBlocks, batch_blocks
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.window import Padding
from toolchain.passes._pass import Prepared

_PLAIN = (1, 1)


@dataclass(frozen=True)
class _Chain:
    """`before`, `after`: the reshapes around the convolution; both, or none."""

    spread: Op
    before: Op | None
    conv: Op
    after: Op | None
    gather: Op

    @property
    def replaced(self) -> tuple[Op, ...]:
        whole = (self.spread, self.before, self.conv, self.after, self.gather)
        return tuple(op for op in whole if op is not None)


@dataclass(frozen=True)
class MergeDilations:
    """Merge the operators around a convolution on every d-th pixel into its dilation."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        dilated: dict[str, tuple[Op, ...]] = {}
        gone: set[str] = set()
        tensors = dict(graph.tensors)
        for op in graph.ops:
            chain = _chain(op, graph) if op.kind == "batch_to_space" else None
            made = _dilated(chain, graph) if chain else None
            if chain and made:
                ops, changed = made
                dilated[chain.gather.name] = ops
                gone.update(one.name for one in chain.replaced)
                tensors |= {tensor.name: tensor for tensor in changed}
        if not gone:
            return prepared
        ops_: list[Op] = []
        for op in graph.ops:
            ops_ += dilated.get(op.name, () if op.name in gone else (op,))
        return prepared.with_graph(graph.with_ops(ops_, tensors.values()))


def _made_for(op: Op, graph: Graph) -> Op | None:
    """The operator that computes the first input, if nothing else reads it."""
    name = op.inputs[0]
    alone = len(graph.consumers[name]) == 1 and op.inputs.count(name) == 1
    if name not in graph.producers or not alone or name in graph.kept:
        return None
    return graph.ops[graph.producers[name]]


def _chain(gather: Op, graph: Graph) -> _Chain | None:
    after = None
    conv = _made_for(gather, graph)
    if conv is not None and conv.kind == "reshape":
        after, conv = conv, _made_for(conv, graph)
    if conv is None or not isinstance(conv.attributes, Conv2D | DepthwiseConv2D):
        return None
    before = None
    spread = _made_for(conv, graph)
    if spread is not None and spread.kind == "reshape":
        before, spread = spread, _made_for(spread, graph)
    if spread is None or spread.kind != "space_to_batch" or (before is None) != (after is None):
        return None
    return _Chain(spread, before, conv, after, gather)


def _sides(
    chain: _Chain, graph: Graph, blocks: BatchBlocks
) -> tuple[tuple[int, int], tuple[tuple[int, int], tuple[int, int]]] | None:
    """Block and ends of rows and columns, as the convolution sees them."""
    if chain.before is None or chain.after is None:
        if len(blocks.block) != 2:
            return None
        return (blocks.block[0], blocks.block[1]), (blocks.ends[0], blocks.ends[1])
    flat, image = graph.input(chain.before, 0).shape, graph.output(chain.before).shape
    result = graph.output(chain.conv).shape
    if len(flat) != 3 or len(image) != 4 or (image[0], image[3]) != (flat[0], flat[2]):
        return None
    if image[1] == result[1] == 1 and image[2] == flat[1]:
        return (1, blocks.block[0]), ((0, 0), blocks.ends[0])
    if image[2] == result[2] == 1 and image[1] == flat[1]:
        return (blocks.block[0], 1), (blocks.ends[0], (0, 0))
    return None


def _dilated(chain: _Chain, graph: Graph) -> tuple[tuple[Op, ...], tuple[Tensor, ...]] | None:
    """The operators in the chain's stead, and tensors of other shapes; None where that differs."""
    conv, attributes = chain.conv, chain.conv.attributes
    assert isinstance(attributes, Conv2D | DepthwiseConv2D)
    blocks, crops = batch_blocks(chain.spread), batch_blocks(chain.gather)
    padded = _sides(chain, graph, blocks)
    cropped = _sides(chain, graph, crops)
    plain = attributes.stride == _PLAIN == attributes.dilation
    if padded is None or cropped is None or blocks.block != crops.block or not plain:
        return None
    dilation, ends = padded
    sides = [
        side_padding * dilation[axis] + ends[axis][side] - cropped[1][axis][side]
        for axis, side, side_padding in (
            (0, 0, attributes.padding.top),
            (1, 0, attributes.padding.left),
            (0, 1, attributes.padding.bottom),
            (1, 1, attributes.padding.right),
        )
    ]
    if min(sides) < 0:
        return None
    wider = replace(attributes, dilation=dilation, padding=Padding(*sides))
    source, target = graph.input(chain.spread, 0), graph.output(chain.gather)
    if chain.before is None or chain.after is None:
        ops: tuple[Op, ...] = (
            replace(
                conv,
                inputs=(source.name, *conv.inputs[1:]),
                outputs=(target.name,),
                attributes=wider,
            ),
        )
        changed: tuple[Tensor, ...] = ()
    else:
        line = 1 if dilation[0] == 1 and graph.output(chain.before).shape[1] == 1 else 2
        image = replace(graph.output(chain.before), shape=_with_one(source.shape, line))
        result = replace(graph.output(conv), shape=_with_one(target.shape, line))
        ops = (
            replace(chain.before, inputs=(source.name,), attributes=Reshape(image.shape)),
            replace(conv, attributes=wider),
            replace(chain.after, outputs=(target.name,), attributes=Reshape(target.shape)),
        )
        changed = (image, result)
    table = {**graph.tensors, **{tensor.name: tensor for tensor in changed}}
    return (ops, changed) if _holds(ops, Graph.build("", table.values(), ops, (), ())) else None


def _with_one(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis:])


def _holds(ops: tuple[Op, ...], graph: Graph) -> bool:
    """Whether every output has the shape that its operator derives."""
    try:
        return all(
            spec_of(op.kind).infer(op, graph)[0].shape == graph.output(op).shape for op in ops
        )
    except ValueError:
        return False
