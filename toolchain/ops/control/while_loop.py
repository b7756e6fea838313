"""A graph that runs again and again while another one says so. TFLite WHILE.

The operator's outputs hold the values that are carried from turn to turn: they begin as the
operands of the same places. Operands behind those are the same in every turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.errors import InputError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.control.body import Body, check_body, check_results, macs_of
from toolchain.ops.control.flow import Flow
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.compare import Compare, Relation
from toolchain.ops.elementwise.logical import Connective, Logical
from toolchain.ops.forms import OldForm
from toolchain.ops.interpret import interpret
from toolchain.ops.kernel import Input, Kernel, Output, SafeOverlap
from toolchain.ops.reduction.reduce_max import ReduceMax
from toolchain.ops.spec import STORED, Array, TensorType

MOST_TURNS = 1_000_000
"""Of a loop in NumPy, a minute or more."""


@dataclass(frozen=True)
class WhileLoop(Attributes):
    """Both graphs take all operands. `condition` gives one bool, and `body` the carried values."""

    condition: Body
    body: Body

    @property
    def nested(self) -> tuple[Graph, ...]:
        return self.condition.graph, self.body.graph


def _attributes(op: Op) -> WhileLoop:
    assert isinstance(op.attributes, WhileLoop)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    given = [graph.tensors[name] for name in op.inputs]
    condition, body = _attributes(op).nested
    flags = check_body("the condition", condition, given)
    if [flag.dtype for flag in flags] != [DType.BOOL] or int(np.prod(flags[0].shape)) != 1:
        raise ValueError(f"the condition gives {list(flags)}, not one bool")
    types = check_body("the body", body, given)
    if types != tuple(TensorType(t.shape, t.dtype) for t in given[: len(types)]):
        raise ValueError("its body gives other types than it takes")
    check_results("the body", body, given[: len(types)])
    check_results("the body", body, [graph.tensors[name] for name in op.outputs])
    return types


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    condition, body = _attributes(op).nested
    carried, same = tuple(inputs[: len(op.outputs)]), tuple(inputs[len(op.outputs) :])
    for _ in range(MOST_TURNS):
        if not bool(interpret(condition, (*carried, *same))[0].reshape(())):
            return carried
        carried = interpret(body, (*carried, *same))
    raise InputError(
        f"operator {op.name!r} ({op.kind}) has turned {MOST_TURNS:,} times, and may never end: "
        "Thimble's own reference stops here"
    )


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    flow, attributes, carried = Flow(op, graph, core), _attributes(op), len(op.outputs)
    places = [Output(index) if index < carried else Input(index) for index in range(len(op.inputs))]
    for index in range(carried):
        flow.copy(Input(index), Output(index), graph.output(op, index).size_bytes, within=True)
    flow.mark("loop")
    _, flag = flow.enter(attributes.condition, "condition", places).result(0)
    flow.mark("break", flag)
    entered = flow.enter(attributes.body, "body", places)
    for index in range(carried):
        tensor, place = entered.result(index)
        flow.copy(place, Output(index), tensor.size_bytes)
    flow.mark("end")
    return flow.kernel(tuple(SafeOverlap(i, i, exact=True) for i in range(carried)))


def _macs(op: Op, graph: Graph) -> int:
    """Of one turn."""
    return sum(map(macs_of, _attributes(op).nested))


def _sample(rng: np.random.Generator) -> Graph:
    """x doubles while it is below a limit, for at most as many turns as a counter allows."""
    shape = tuple(int(d) for d in rng.integers(1, 6, int(rng.integers(1, 4))))
    q = Quantisation((float(np.float32(2.0 ** rng.uniform(-6, -1))),), (int(rng.integers(-9, 9)),))
    count = Tensor("count", (), DType.INT32)
    x, limit = Tensor("x", shape, DType.INT8, q), Tensor("limit", (), DType.INT8, q)
    flags = [Tensor(name, (), DType.BOOL) for name in ("few", "small", "goes_on")]
    most = Tensor("most", (), DType.INT32, None, np.array(int(rng.integers(1, 5)), np.int32))
    top = Tensor("top", (), DType.INT8, q)
    axes = tuple(range(len(shape)))
    condition = Graph.build(
        "condition",
        [count, x, limit, *flags, most, top],
        [
            Op("compare", "few", ("count", "most"), ("few",), Compare(Relation.LESS)),
            Op("reduce_max", "top", ("x",), ("top",), ReduceMax(axes)),
            Op("compare", "small", ("top", "limit"), ("small",), Compare(Relation.LESS)),
            Op("logical", "both", ("few", "small"), ("goes_on",), Logical(Connective.AND)),
        ],
        ["count", "x", "limit"],
        ["goes_on"],
    )
    one = Tensor("one", (), DType.INT32, None, np.array(1, np.int32))
    later = [Tensor("next", (), DType.INT32), Tensor("twice", shape, DType.INT8, q)]
    body = Graph.build(
        "body",
        [count, x, limit, one, *later],
        [
            Op("add", "next", ("count", "one"), ("next",), Sum()),
            Op("add", "twice", ("x", "x"), ("twice",), Sum()),
        ],
        ["count", "x", "limit"],
        ["next", "twice"],
    )
    start = Tensor("start", (), DType.INT32, None, np.array(0, np.int32))
    ends = [Tensor("turns", (), DType.INT32), Tensor("y", shape, DType.INT8, q)]
    attributes = WhileLoop(Body(condition), Body(body))
    op = Op("while_loop", "loop", ("start", "x", "limit"), ("turns", "y"), attributes)
    return Graph.build("sample", [start, x, limit, *ends], [op], ["x", "limit"], ["turns", "y"])


SPEC = OldForm(
    kind="while_loop",
    attributes=WhileLoop,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    types=frozenset(DType),
    quantised=STORED,
    limits="TFLite WHILE whose number of turns is not known; graphs of what is in this table, "
    "without variables; shapes stay as they are",
)
