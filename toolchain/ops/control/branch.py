"""One of two graphs, as a bool says that is computed at run time. TFLite IF."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.control.body import Body, check_body, check_results, macs_of
from toolchain.ops.control.flow import Flow
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.interpret import interpret
from toolchain.ops.unary.relu import Bounds, Relu

_FLAG = kit.Input(0)


@dataclass(frozen=True)
class Branch(kit.Attributes):
    """The graph that runs where the bool is true, and the other one. Both take all operands but
    the first one, which is the bool, and write where the operator's outputs lie.
    """

    then: Body
    otherwise: Body

    @staticmethod
    def of(then: kit.Graph, otherwise: kit.Graph) -> Branch:
        return Branch(Body(then, results_outside=True), Body(otherwise, results_outside=True))

    @property
    def nested(self) -> tuple[kit.Graph, ...]:
        return self.then.graph, self.otherwise.graph


def _infer(op: kit.Operator[Branch]) -> kit.TensorTypes:
    flag, *given = op.each
    if flag.dtype is not kit.DType.BOOL or flag.elements != 1:
        raise ValueError(f"{flag} is not one bool")
    then, otherwise = op.attributes.nested
    types = check_body("the branch for true", then, given)
    if check_body("the branch for false", otherwise, given) != types:
        raise ValueError("its branches give other types")
    check_results("the branch for true", then, op.outputs)
    check_results("the branch for false", otherwise, op.outputs)
    return types


def _reference(op: kit.Operator[Branch], inputs: kit.Inputs) -> kit.Arrays:
    flag, *given = inputs
    then, otherwise = op.attributes.nested
    return interpret(then if flag.reshape(()) else otherwise, given)


def _select(op: kit.Operator[Branch], core: kit.Core) -> kit.Kernel:
    flow, attributes = Flow(op, core), op.attributes
    given = [kit.Input(index) for index in range(1, len(op.inputs))]
    flow.mark("if", _FLAG)
    for role, body in (("then", attributes.then), ("otherwise", attributes.otherwise)):
        if role == "otherwise":
            flow.mark("else")
        flow.enter(body, role, given, [kit.Output(index) for index in range(len(op.outputs))])
    flow.mark("end")
    return flow.kernel(one_of=True)


def _macs(op: kit.Operator[Branch]) -> int:
    """Multiply-accumulates of the branch that has more."""
    return max(map(macs_of, op.attributes.nested))


def _sample(rng: np.random.Generator) -> kit.Graph:
    """A sum with a constant, or a ReLU of the same; a second operand goes by another way."""
    shape = tuple(int(d) for d in rng.integers(1, 7, int(rng.integers(1, 4))))
    q = kit.Quantisation(
        (float(np.float32(2.0 ** rng.uniform(-6, -1))),), (int(rng.integers(-9, 9)),)
    )
    x, y, z = (kit.Tensor(name, shape, kit.DType.INT8, q) for name in "xyz")
    data = rng.integers(-128, 128, shape).astype(np.int8)
    c = kit.Tensor("c", shape, kit.DType.INT8, q, data)
    bodies = [
        kit.Graph.build(
            "then", [x, y, z, c], [kit.Op("add", "a", ("x", "c"), ("z",), Sum())], "xy", "z"
        ),
        kit.Graph.build(
            "otherwise",
            [x, y, z, kit.Tensor("r", shape, kit.DType.INT8, q)],
            [
                kit.Op("relu", "a", ("y",), ("r",), Relu(Bounds.RELU)),
                kit.Op("add", "b", ("r", "x"), ("z",), Sum()),
            ],
            "xy",
            "z",
        ),
    ]
    flag = kit.Tensor("flag", (1,) if rng.random() < 0.5 else (), kit.DType.BOOL)
    branch = Branch.of(*(bodies if rng.random() < 0.5 else reversed(bodies)))
    op = kit.Op("branch", "branch", ("flag", "x", "y"), ("z",), branch)
    return kit.Graph.build("sample", [flag, x, y, z], [op], ["flag", "x", "y"], ["z"])


SPEC = kit.Form(
    kind="branch",
    attributes=Branch,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    types=frozenset(kit.DType),
    quantised=kit.STORED,
    limits="TFLite IF whose condition is computed; branches of what is in this table, without "
    "variables",
)
