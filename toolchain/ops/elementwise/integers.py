"""Functions of two integers as TFLite computes them, in int64; the type of results wraps them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import Int64, sample_binary
from toolchain.ops.elementwise.rows import Binary, Limited, OfFunction, Options, Reader
from toolchain.ops.readers.onnx_elementwise import read_plain

DIVISOR = Limited(
    lambda data: bool(data.all()), "it divides by 0, at which TFLite stops", "divisor"
)
EXPONENT = Limited(
    lambda data: bool((data.astype(np.int64) >= 0).all()),
    "it has a negative exponent, at which TFLite stops",
    "exponent",
    lambda data: np.abs(data) % 8,
)


@dataclass(frozen=True)
class Pow(OfFunction):
    """`multiplied`: the power is a row of multiplications wherever the exponent is a whole number,
    as LiteRT computes it where one exponent serves all bases of another shape (`BroadcastPow4D`).
    """

    multiplied: bool = False

    @property
    def computes(self) -> str:
        return "pow_multiplied" if self.multiplied else ""

    @staticmethod
    def of(bases: tuple[int, ...], exponents: tuple[int, ...]) -> Pow:
        """Attributes for operands of these shapes in a TFLite file."""
        return Pow(math.prod(exponents) == 1 and bases != exponents)


def _read_pow(node: kit.TfliteNode) -> Pow:
    bases, exponents = node.inputs
    assert bases is not None and exponents is not None
    return Pow.of(bases.shape, exponents.shape)


def sample_pow(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """An operator with the attributes of its operands' shapes."""
    graph = sample_binary(rng, kind, attributes)
    chosen = Pow.of(graph.tensors["a"].shape, graph.tensors["b"].shape)
    return replace(graph, ops=(replace(graph.ops[0], attributes=chosen),))


POW = Options(_read_pow, options_type="PowOptions")


def remainder_readers(row: Binary) -> tuple[Reader, Reader]:
    """Readers of ONNX's Mod. Operands are plain integers, divisors constants other than 0."""

    def read(node: kit.OnnxNode) -> None:
        if not node.plain or node.attribute("fmod", 0):
            raise node.unsupported("its remainders have the sign of the dividend", "export fmod=0")
        check_divisors(node)
        read_plain(row.name)(node)

    return read, read


def check_divisors(node: kit.OnnxNode) -> None:
    """Raise UnsupportedError unless they are constants other than 0."""
    if not DIVISOR.holds(node.constant(1).data):
        raise node.unsupported("it divides integers by 0")


def quotient(a: Int64, b: Int64) -> Int64:
    """Rounded towards 0."""
    found: Int64 = a // b + ((a % b != 0) & ((a < 0) != (b < 0)))
    return found


def squared_wrapping(a: Int64, b: Int64) -> Int64:
    """The difference wraps before it is squared."""
    difference = kit.wrap_int32(a - b)
    return difference * difference


def _powers(a: Int64, b: Int64, too_large: Callable[[int], int]) -> Int64:
    """`too_large`: what becomes of a power that int32 does not hold."""
    least, most = -(2**31), 2**31 - 1
    pairs = zip(*(values.ravel() for values in np.broadcast_arrays(a, b)), strict=True)
    powers = [int(base) ** int(exponent) for base, exponent in pairs]
    held = [value if least <= value <= most else too_large(value) for value in powers]
    return np.array(held, np.int64).reshape(np.broadcast_shapes(a.shape, b.shape))


def power(a: Int64, b: Int64) -> Int64:
    """A power beyond int32 is its least number, as a double is converted."""
    return _powers(a, b, lambda value: -(2**31))


def power_multiplied(a: Int64, b: Int64) -> Int64:
    """Products that wrap."""
    return _powers(a, b, lambda value: (value + 2**31) % 2**32 - 2**31)
