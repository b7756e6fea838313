"""One ONNX operator as the front end knows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Flag, auto

from toolchain.frontends.onnx.model import Node
from toolchain.frontends.onnx.operators.tensors import Tensors
from toolchain.frontends.onnx.writing import Writer
from toolchain.frontends.unread import Unread
from toolchain.ops.spec import OnnxBinding, OnnxNode

Read = Callable[[OnnxNode], None]
Rewrite = Callable[[Writer], None]


class Trait(Flag):
    """Traits of an operator, for passes over the whole model."""

    NONE = 0
    KEEPS_VALUES = auto()
    """Its results are among its inputs, so that quantising before or after is the same."""
    ORDERS = auto()
    """It only compares values, so that stored integers serve as well as real ones."""
    TAKES_PARTS = auto()
    """Its results may lack some of the values."""
    JOINS = auto()
    """Its result is all of its inputs together."""
    PICKS = auto()
    """Its first input alone holds the values; the others say which."""
    PRODUCT = auto()
    """It multiplies by weights and sums."""
    MASKS = auto()
    """It brings the infinity of an attention's mask; softmax makes as little of -3.4e38."""
    IN_TABLES = auto()
    """It may be part of a chain of operators that becomes a table (`tables`)."""
    STORES = auto()
    """It says how a real value is stored."""
    OF_THE_MOMENT = auto()
    """It computes with scales that are known only while the model runs."""
    JOINED = auto()
    """It is read together with the operators that read it (`dynamic`)."""
    STAYS_QUANTISED = auto()
    """Its result of a quantised constant is a quantised constant."""
    ENLARGES = auto()
    """Its outputs may be of any size, however small its inputs are."""
    FOLDED_ONLY = auto()
    """It becomes a constant once the shapes of the inputs are known; no kind reads it."""
    NEVER_FOLDED = auto()
    """It is not computed at import even if its inputs are constant."""


@dataclass(frozen=True)
class Older:
    """How an operator of opsets below `before` is written in the form of opset 13.

    `convert` writes nothing where the operator has that form already.
    """

    before: int
    convert: Rewrite


@dataclass(frozen=True)
class Operator:
    """One ONNX operator, and the forms in which it is read; None for a form that it lacks.

    name       has the operator's domain unless it is standard.
    older      forms of old opsets.
    integers   it computes on stored integers, and is written as DequantizeLinear, the operator on
               real values, QuantizeLinear.
    composed   it is written as others; writes nothing where it can stay.
    written    which of its forms `composed` writes, to tell where it is left.
    arranges   it changes names, layouts or types of tensors, and has no kernel.
    plain      reads it on bools and integers without a scale.
    quantised  reads it on quantised values.
    float32    reads it on float32 values; without it, `quantised` does.
    clips      the least and the largest result of one that clips; None where they are not constant.
    modes      what its attribute `mode` may be; any text where there is none.
    unread     why it is not read, and what to do.

    `plain` and `quantised` come from the kind that the operator becomes: `ops.spec.OnnxBinding`.
    """

    name: str
    traits: Trait = Trait.NONE
    older: Older | None = None
    integers: Rewrite | None = None
    composed: Rewrite | None = None
    written: str = ""
    arranges: Callable[[Tensors, Node], None] | None = None
    plain: Read | None = None
    quantised: Read | None = None
    float32: Read | None = None
    clips: Callable[[Tensors, Node], tuple[float, float] | None] | None = None
    modes: tuple[str, ...] = ()
    unread: Unread | None = None

    @property
    def computes(self) -> bool:
        """Whether a kind reads it on real values."""
        return self.quantised is not None or self.float32 is not None

    @property
    def stays(self) -> bool:
        """Whether it is read in this form, after operators that are written as others are."""
        return self.computes or self.arranges is not None or Trait.JOINED in self.traits

    @property
    def is_quantised(self) -> bool:
        """Whether only quantised models have it."""
        return self.integers is not None or Trait.STORES in self.traits

    @property
    def moves_integers(self) -> bool:
        """Whether it does with stored integers exactly what it does with real values."""
        moves = Trait.KEEPS_VALUES in self.traits and self.clips is None
        return moves or Trait.ORDERS in self.traits

    @property
    def refusal(self) -> tuple[str, str]:
        """Why it is refused where no form reads it, and what to do."""
        if self.written:
            return f"it is read only with {self.written}", "replace it"
        if self.unread is None:
            return "it has no kernel", "replace it, or keep it outside of the compiled model"
        return f"it has no kernel: {self.unread.why}", self.unread.remedy

    def read_by(self, binding: OnnxBinding) -> Operator:
        """The operator with the readers of a kind. Raises ImportError where another kind reads
        it."""
        if self.quantised is not None:
            raise ImportError(f"two kinds read the ONNX operator {self.name}")
        return replace(self, quantised=binding.read, plain=binding.plain)
