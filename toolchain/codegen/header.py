"""The inputs and outputs of a model, as its header shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.codegen.arrays import c_type
from toolchain.codegen.names import Names, tensor_identifier
from toolchain.codegen.writer import Writer
from toolchain.ir import Boundary, DType, Tensor
from toolchain.ir.boundary import End
from toolchain.memory.plan import Plan
from toolchain.ops.movement.input_rows import InputRows, rows_of

_AXES = {
    (0, 2, 1): ("n", "c", "w"),
    (0, 2, 3, 1): ("n", "c", "h", "w"),
    (0, 2, 3, 4, 1): ("n", "c", "d", "h", "w"),
}
"""Names of a model's axes by the permutation of an image with its channels first."""


@dataclass(frozen=True)
class Accessor:
    """One input or output. It lies in flash at `symbol`, a C expression, if that is set; otherwise
    in the arena at `address`, which is the byte `offset` of its part number `part`; one that
    arrives by `rows` lies nowhere.

    `info`: what the names of its arrays in `<name>_info.c` begin with. `labels` are the names of
    its classes, where there are any.
    """

    direction: str
    identifier: str
    end: End
    address: str
    symbol: str
    info: str
    part: int
    offset: int
    labels: tuple[str, ...] = ()
    rows: InputRows | None = None

    @property
    def tensor(self) -> Tensor:
        return self.end.tensor

    @property
    def boundary(self) -> Boundary | None:
        return self.end.boundary

    @property
    def c_type(self) -> str:
        return c_type(self.tensor.dtype)

    @property
    def through_void(self) -> bool:
        """Whether a cast from the arena's bytes must go through void *, because of -Wcast-align."""
        return self.tensor.dtype.size_bytes > 1

    @property
    def scale(self) -> float:
        return self.tensor.q.scale

    @property
    def zero_point(self) -> int:
        return self.tensor.q.zero_point

    @property
    def quantised(self) -> bool:
        """Whether one scale and one zero point map the whole tensor to real values."""
        q = self.tensor.quantisation
        integral = self.tensor.dtype in (DType.INT8, DType.UINT8, DType.INT16)
        return q is not None and integral and not q.per_channel and q.scale > 0

    @property
    def limits(self) -> tuple[str, str]:
        prefix = self.tensor.dtype.value.upper()
        return ("0" if prefix.startswith("U") else f"{prefix}_MIN", f"{prefix}_MAX")

    @property
    def halves_to_even(self) -> bool:
        return self.boundary is not None and self.boundary.halves_to_even

    @property
    def model_form(self) -> str:
        """Type and shape in the model file, if they differ from the graph's; otherwise ''."""
        if self.boundary is None:
            return ""
        shape = "x".join(str(d) for d in self.end.model_shape) or "1"
        return f"{self.end.model_dtype.value} [{shape}]"

    @property
    def layout(self) -> str:
        """The name of the model file's order of axes, as NCHW, or its axes as the graph has them;
        '' where the two agree."""
        permutation = () if self.boundary is None else self.boundary.permutation
        if not permutation:
            return ""
        names = _AXES.get(permutation)
        if names is None:
            return f"its axes {', '.join(map(str, permutation))} are the axes here in their order"
        here = "".join(names[axis] for axis in permutation)
        return f"{''.join(names).upper()}, here {here.upper()}"

    @property
    def places(self) -> tuple[str, str]:
        """In C: the indices of an element in the model file's order, and its number here."""
        assert self.boundary is not None
        permutation, shape = self.boundary.permutation, self.tensor.shape
        names = _AXES.get(permutation) or tuple(f"i{axis}" for axis in range(len(shape)))
        number = names[permutation[0]]
        for axis, size in list(zip(permutation, shape, strict=True))[1:]:
            if " " in number:
                number = f"({number})"
            number = f"{number} * {size} + {names[axis]}"
        return "".join(f"[{name}]" for name in names), number

    @property
    def uint8_shift(self) -> int | None:
        """The number to add to the model's uint8 to get the graph's int8; None for other types."""
        b = self.boundary
        if b is None or b.dtype is not DType.UINT8 or b.quantisation is None:
            return None
        return self.zero_point - b.quantisation.zero_point


def accessors(plan: Plan, writer: Writer) -> tuple[tuple[Accessor, ...], tuple[Accessor, ...]]:
    """The inputs and outputs of the plan's graph, in its order, under unique identifiers."""
    graph = plan.graph
    pushed = graph.pushed and graph.pushed.input
    taken = next((rows_of(graph.ops[i]) for i in graph.consumers[pushed]), None) if pushed else None

    def side(direction: str, ends: Sequence[End]) -> tuple[Accessor, ...]:
        names, accessors_of_side, places = Names(), [], writer.places
        for number, end in enumerate(ends):
            at = plan.arena.offsets.get(end.name, 0)
            part, offset = places.part(at)
            accessors_of_side.append(
                Accessor(
                    direction,
                    names.unique(tensor_identifier(end.name, direction)),
                    end,
                    places.address(at),
                    writer.value(end.tensor) if end.tensor.is_constant else "",
                    f"{places.prefix}_info_{direction}{number}",
                    part,
                    offset,
                    plan.about.labels.get(end.name, ()),
                    taken if end.name == pushed else None,
                )
            )
        return tuple(accessors_of_side)

    return side("input", plan.inputs), side("output", plan.outputs)
