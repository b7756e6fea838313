"""A graph that runs again and again while another one says so. TFLite WHILE.

The operator's outputs hold the values that are carried from turn to turn: they begin as the
operands of the same places. Operands behind those are the same in every turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.control.body import Body, check_body, check_results, macs_of
from toolchain.ops.control.flow import Flow
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.compare import Compare, Relation
from toolchain.ops.elementwise.logical import Connective, Logical
from toolchain.ops.interpret import interpret
from toolchain.ops.reduction.reduce_max import ReduceMax

MOST_TURNS = 1_000_000
"""The most turns of a loop in NumPy: a minute or more."""


@dataclass(frozen=True)
class WhileLoop(kit.Attributes):
    """Both graphs take all operands. `condition` gives one bool, and `body` the carried values."""

    condition: Body
    body: Body

    @property
    def nested(self) -> tuple[kit.Graph, ...]:
        return self.condition.graph, self.body.graph


def _infer(op: kit.Operator[WhileLoop]) -> kit.TensorTypes:
    given = op.each
    condition, body = op.attributes.nested
    flags = check_body("the condition", condition, given)
    if [flag.dtype for flag in flags] != [kit.DType.BOOL] or int(np.prod(flags[0].shape)) != 1:
        raise ValueError(f"the condition gives {list(flags)}, not one bool")
    types = check_body("the body", body, given)
    if types != tuple(kit.TensorType(t.shape, t.dtype) for t in given[: len(types)]):
        raise ValueError("its body gives other types than it takes")
    check_results("the body", body, given[: len(types)])
    check_results("the body", body, op.outputs)
    return types


def _reference(op: kit.Operator[WhileLoop], inputs: kit.Inputs) -> kit.Arrays:
    condition, body = op.attributes.nested
    carried, same = tuple(inputs[: len(op.outputs)]), tuple(inputs[len(op.outputs) :])
    for _ in range(MOST_TURNS):
        if not bool(interpret(condition, (*carried, *same))[0].reshape(())):
            return carried
        carried = interpret(body, (*carried, *same))
    raise kit.InputError(
        f"operator {op.name!r} ({op.kind}) has turned {MOST_TURNS:,} times, and may never end: "
        "Thimble's own reference stops here"
    )


def _select(op: kit.Operator[WhileLoop], core: kit.Core) -> kit.Kernel:
    flow, attributes, carried = Flow(op, core), op.attributes, len(op.outputs)
    places = [
        kit.Output(index) if index < carried else kit.Input(index)
        for index in range(len(op.inputs))
    ]
    for index in range(carried):
        flow.copy(kit.Input(index), kit.Output(index), op.output(index).size_bytes, within=True)
    flow.mark("loop")
    _, flag = flow.enter(attributes.condition, "condition", places).result(0)
    flow.mark("break", flag)
    entered = flow.enter(attributes.body, "body", places)
    for index in range(carried):
        tensor, place = entered.result(index)
        flow.copy(place, kit.Output(index), tensor.size_bytes)
    flow.mark("end")
    return flow.kernel(tuple(kit.SafeOverlap(i, i, exact=True) for i in range(carried)))


def _macs(op: kit.Operator[WhileLoop]) -> int:
    """Multiply-accumulates of one turn."""
    return sum(map(macs_of, op.attributes.nested))


def _sample(rng: np.random.Generator) -> kit.Graph:
    """x doubles while it is below a limit, for at most as many turns as a counter allows."""
    shape = tuple(int(d) for d in rng.integers(1, 6, int(rng.integers(1, 4))))
    q = kit.Quantisation(
        (float(np.float32(2.0 ** rng.uniform(-6, -1))),), (int(rng.integers(-9, 9)),)
    )
    count = kit.Tensor("count", (), kit.DType.INT32)
    x, limit = kit.Tensor("x", shape, kit.DType.INT8, q), kit.Tensor("limit", (), kit.DType.INT8, q)
    flags = [kit.Tensor(name, (), kit.DType.BOOL) for name in ("few", "small", "goes_on")]
    most = kit.Tensor(
        "most", (), kit.DType.INT32, None, np.array(int(rng.integers(1, 5)), np.int32)
    )
    top = kit.Tensor("top", (), kit.DType.INT8, q)
    axes = tuple(range(len(shape)))
    condition = kit.Graph.build(
        "condition",
        [count, x, limit, *flags, most, top],
        [
            kit.Op("compare", "few", ("count", "most"), ("few",), Compare(Relation.LESS)),
            kit.Op("reduce_max", "top", ("x",), ("top",), ReduceMax(axes)),
            kit.Op("compare", "small", ("top", "limit"), ("small",), Compare(Relation.LESS)),
            kit.Op("logical", "both", ("few", "small"), ("goes_on",), Logical(Connective.AND)),
        ],
        ["count", "x", "limit"],
        ["goes_on"],
    )
    one = kit.Tensor("one", (), kit.DType.INT32, None, np.array(1, np.int32))
    later = [kit.Tensor("next", (), kit.DType.INT32), kit.Tensor("twice", shape, kit.DType.INT8, q)]
    body = kit.Graph.build(
        "body",
        [count, x, limit, one, *later],
        [
            kit.Op("add", "next", ("count", "one"), ("next",), Sum()),
            kit.Op("add", "twice", ("x", "x"), ("twice",), Sum()),
        ],
        ["count", "x", "limit"],
        ["next", "twice"],
    )
    start = kit.Tensor("start", (), kit.DType.INT32, None, np.array(0, np.int32))
    ends = [kit.Tensor("turns", (), kit.DType.INT32), kit.Tensor("y", shape, kit.DType.INT8, q)]
    attributes = WhileLoop(Body(condition), Body(body))
    op = kit.Op("while_loop", "loop", ("start", "x", "limit"), ("turns", "y"), attributes)
    return kit.Graph.build("sample", [start, x, limit, *ends], [op], ["x", "limit"], ["turns", "y"])


SPEC = kit.Form(
    kind="while_loop",
    attributes=WhileLoop,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    types=frozenset(kit.DType),
    quantised=kit.STORED,
    limits="TFLite WHILE whose number of turns is not known; graphs of what is in this table, "
    "without variables; shapes stay as they are",
)
