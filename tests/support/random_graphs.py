"""Random graphs of reshapes, slices, splits, concats and the like, with arithmetic in between."""

from __future__ import annotations

import math

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pack import Pack
from toolchain.ops.movement.pad import Pad
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice
from toolchain.ops.movement.split import Split
from toolchain.ops.movement.transpose import Transpose
from toolchain.ops.movement.unpack import Unpack
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.unary.leaky_relu import LeakyRelu

QUANTISATION = Quantisation((0.125,), (3,))
MOST_ELEMENTS = 400


class _Builder:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self.read: set[str] = set()

    def tensor(self, shape: tuple[int, ...], constant: bool = False) -> Tensor:
        data = self.rng.integers(-128, 128, shape).astype(np.int8) if constant else None
        made = Tensor(f"t{len(self.tensors)}", shape, DType.INT8, QUANTISATION, data)
        self.tensors[made.name] = made
        return made

    def add(
        self, kind: str, attributes: Attributes, inputs: list[Tensor], *shapes: tuple[int, ...]
    ) -> list[Tensor]:
        outputs = [self.tensor(shape) for shape in shapes]
        names = tuple(t.name for t in inputs)
        self.read.update(names)
        op = Op(kind, f"op{len(self.ops)}", names, tuple(t.name for t in outputs), attributes)
        self.ops.append(op)
        return outputs

    def pick(self) -> Tensor:
        """A recent tensor most often."""
        names = [t.name for t in self.tensors.values() if not t.is_constant]
        back = int(min(self.rng.geometric(0.3), len(names)))
        return self.tensors[names[-back]]

    def two_dimensional(self) -> Tensor:
        x = self.pick()
        if len(x.shape) == 2 and self.rng.random() < 0.6:
            return x
        divisors = [d for d in range(1, 9) if x.elements % d == 0]
        rows = int(self.rng.choice(divisors))
        if (rows, x.elements // rows) == x.shape:
            return x
        shape = (rows, x.elements // rows)
        return self.add("reshape", Reshape(shape), [x], shape)[0]

    def step(self) -> None:
        rng = self.rng
        kinds = "concat concat concat slice slice split unpack pack pad transpose leaky_relu mean"
        kind = str(rng.choice(kinds.split()))
        x = self.two_dimensional()
        rows, columns = x.shape
        if kind == "concat":
            self.concat(x)
        elif kind == "slice":
            r0, c0 = int(rng.integers(rows)), int(rng.integers(columns))
            if rng.random() < 0.5:
                c0 = 0
            step = int(rng.choice([1, 1, 1, 2]))
            sizes = (int(rng.integers(1, rows - r0 + 1)), (columns - c0 - 1) // step + 1)
            self.add("slice", Slice((r0, c0), sizes, (1, step), sizes), [x], sizes)
        elif kind == "split":
            axis = int(rng.integers(2))
            first = int(rng.integers(1, max(x.shape[axis], 2)))
            lengths = (first, x.shape[axis] - first) if x.shape[axis] > first else (first,)
            shapes = [(n, columns) if axis == 0 else (rows, n) for n in lengths]
            self.add("split", Split(axis, lengths), [x], *shapes)
        elif kind == "unpack":
            self.add("unpack", Unpack(0), [x], *([(columns,)] * rows))
        elif kind == "pack" and 2 * x.elements <= MOST_ELEMENTS:
            axis = int(rng.integers(3))
            same = [t for t in self.tensors.values() if t.shape == x.shape]
            other = same[int(rng.integers(len(same)))]
            shape = (*x.shape[:axis], 2, *x.shape[axis:])
            self.add("pack", Pack(axis), [x, other], shape)
        elif kind == "pad":
            ends = tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (2, 2)))
            shape = (rows + sum(ends[0]), columns + sum(ends[1]))
            if math.prod(shape) <= MOST_ELEMENTS:
                self.add("pad", Pad(ends, int(rng.integers(-128, 128))), [x], shape)
        elif kind == "transpose":
            self.add("transpose", Transpose((1, 0)), [x], (columns, rows))
        elif kind == "leaky_relu":
            self.add("leaky_relu", LeakyRelu(-0.75), [x], x.shape)
        elif kind == "mean":
            axis = int(rng.integers(2))
            self.add("mean", Reduce((axis,)), [x], (rows if axis else columns,))

    def concat(self, x: Tensor) -> None:
        """Along the first axis most often; x itself and constants may be among the operands."""
        axis = int(self.rng.random() < 0.3)
        operands = [x]
        for t in list(self.tensors.values()):
            fits = len(t.shape) == 2 and t.shape[1 - axis] == x.shape[1 - axis]
            if fits and len(operands) < 4 and self.rng.random() < 0.5:
                operands.append(t)
        if self.rng.random() < 0.2:
            shape = (3, x.shape[1]) if axis == 0 else (x.shape[0], 3)
            operands.append(self.tensor(shape, constant=True))
        order = self.rng.permutation(len(operands))
        operands = [operands[i] for i in order]
        length = sum(t.shape[axis] for t in operands)
        shape = (length, x.shape[1]) if axis == 0 else (x.shape[0], length)
        if math.prod(shape) <= MOST_ELEMENTS:
            self.add("concat", Concat(axis), operands, shape)


def random_movement_graph(rng: np.random.Generator) -> Graph:
    """One or two inputs, a dozen operators; outputs are all that nothing reads, and some more."""
    builder = _Builder(rng)
    inputs = [builder.tensor((int(rng.integers(1, 7)), int(rng.integers(1, 9))))]
    if rng.random() < 0.5:
        inputs.append(builder.tensor(inputs[0].shape))
    for _ in range(int(rng.integers(4, 14))):
        builder.step()
    names = {t.name for t in inputs}
    outputs = [
        t.name
        for t in builder.tensors.values()
        if not t.is_constant
        and t.name not in names
        and (t.name not in builder.read or rng.random() < 0.1)
    ]
    graph = Graph.build(
        "random", builder.tensors.values(), builder.ops, [t.name for t in inputs], outputs
    )
    return graph.with_ops(builder.ops)
