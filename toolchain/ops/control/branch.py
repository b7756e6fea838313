"""One of two graphs, as a bool says that is computed at run time. TFLite IF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.control.body import Body, check_body, check_results, macs_of
from toolchain.ops.control.flow import Flow
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.forms import OldForm
from toolchain.ops.interpret import interpret
from toolchain.ops.kernel import Input, Kernel, Output
from toolchain.ops.spec import STORED, Array, TensorType
from toolchain.ops.unary.relu import Bounds, Relu

_FLAG = Input(0)


@dataclass(frozen=True)
class Branch(Attributes):
    """The graph that runs where the bool is true, and the other one. Both take all operands but
    the first one, which is the bool, and write where the operator's outputs lie.
    """

    then: Body
    otherwise: Body

    @staticmethod
    def of(then: Graph, otherwise: Graph) -> Branch:
        return Branch(Body(then, results_outside=True), Body(otherwise, results_outside=True))

    @property
    def nested(self) -> tuple[Graph, ...]:
        return self.then.graph, self.otherwise.graph


def _attributes(op: Op) -> Branch:
    assert isinstance(op.attributes, Branch)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    flag, *given = (graph.tensors[name] for name in op.inputs)
    if flag.dtype is not DType.BOOL or flag.elements != 1:
        raise ValueError(f"{flag} is not one bool")
    then, otherwise = _attributes(op).nested
    types = check_body("the branch for true", then, given)
    if check_body("the branch for false", otherwise, given) != types:
        raise ValueError("its branches give other types")
    check_results("the branch for true", then, [graph.tensors[name] for name in op.outputs])
    check_results("the branch for false", otherwise, [graph.tensors[name] for name in op.outputs])
    return types


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    flag, *given = inputs
    then, otherwise = _attributes(op).nested
    return interpret(then if flag.reshape(()) else otherwise, given)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    flow, attributes = Flow(op, graph, core), _attributes(op)
    given = [Input(index) for index in range(1, len(op.inputs))]
    flow.mark("if", _FLAG)
    for role, body in (("then", attributes.then), ("otherwise", attributes.otherwise)):
        if role == "otherwise":
            flow.mark("else")
        flow.enter(body, role, given, [Output(index) for index in range(len(op.outputs))])
    flow.mark("end")
    return flow.kernel(one_of=True)


def _macs(op: Op, graph: Graph) -> int:
    """Of the branch that has more."""
    return max(map(macs_of, _attributes(op).nested))


def _sample(rng: np.random.Generator) -> Graph:
    """A sum with a constant, or a ReLU of the same; a second operand goes by another way."""
    shape = tuple(int(d) for d in rng.integers(1, 7, int(rng.integers(1, 4))))
    q = Quantisation((float(np.float32(2.0 ** rng.uniform(-6, -1))),), (int(rng.integers(-9, 9)),))
    x, y, z = (Tensor(name, shape, DType.INT8, q) for name in "xyz")
    data = rng.integers(-128, 128, shape).astype(np.int8)
    c = Tensor("c", shape, DType.INT8, q, data)
    bodies = [
        Graph.build("then", [x, y, z, c], [Op("add", "a", ("x", "c"), ("z",), Sum())], "xy", "z"),
        Graph.build(
            "otherwise",
            [x, y, z, Tensor("r", shape, DType.INT8, q)],
            [
                Op("relu", "a", ("y",), ("r",), Relu(Bounds.RELU)),
                Op("add", "b", ("r", "x"), ("z",), Sum()),
            ],
            "xy",
            "z",
        ),
    ]
    flag = Tensor("flag", (1,) if rng.random() < 0.5 else (), DType.BOOL)
    branch = Branch.of(*(bodies if rng.random() < 0.5 else reversed(bodies)))
    op = Op("branch", "branch", ("flag", "x", "y"), ("z",), branch)
    return Graph.build("sample", [flag, x, y, z], [op], ["flag", "x", "y"], ["z"])


SPEC = OldForm(
    kind="branch",
    attributes=Branch,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    types=frozenset(DType),
    quantised=STORED,
    limits="TFLite IF whose condition is computed; branches of what is in this table, without "
    "variables",
)
