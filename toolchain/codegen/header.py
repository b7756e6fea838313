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
