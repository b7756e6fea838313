"""The calls of a kernel as trees of C expressions, which blocks of one operator may share.

`templates/ops` prints the trees. A partitioned operator has one call per block. Calls whose trees
differ only in leaves (an offset, a row count) share one C function: each leaf that differs becomes
a column of a table, with one row per block (`share`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd
from typing import ClassVar, TypeAlias

import numpy as np

from toolchain.ops.kernel import (
    Argument,
    Input,
    Items,
    Output,
    Packed,
    Row,
    Scratch,
    Struct,
    Symbol,
)
from toolchain.ops.kernel import Call as KernelCall

NUMBER, OFFSET, SIZE, POINTER = "number", "offset", "size", "pointer"
"""The forms of a leaf: an int32_t; bytes from the start of an arena; a size_t; a pointer to a
constant."""
_FEW = 3
"""A struct with at most so many members is printed on one line."""
_SHORT = 12
"""Members whose names have at most so many letters in all share a line with their braces, as in
{.n = 1, .h = 8}."""
_BLOCK = "block"
"""The name, in a shared function's body, of the block's row in the table."""
_CMSIS_TYPES = ("cmsis_nn_",)
"""Prefixes of struct types whose member names (`h`, `w`) say little without the object's name."""


@dataclass(frozen=True)
class Leaf:
    """A part of a call that may differ between blocks: a number or a symbol, as `text`.

    `type` is the C type that a pointer points to. Once the leaf has become a column, `column` is
    the expression for it in the function's body. `symbol`: the constant that lies at this offset of
    the blob of weights.
    """

    kind: ClassVar[str] = "leaf"
    rows: ClassVar[bool] = False
    name: str
    form: str
    text: str
    type: str = ""
    column: str = ""
    symbol: str = ""


@dataclass(frozen=True)
class Word:
    """A literal or an identifier, the same in all blocks. `varies`: an expression that is no
    constant in C.
    """

    kind: ClassVar[str] = "word"
    rows: ClassVar[bool] = False
    text: str
    varies: bool = False


@dataclass(frozen=True)
class Address:
    """A pointer to an element of the arena or of a constant. Loops may move it on.

    `type` is the C type of the element; '' stands for void. In the arena the element lies `offset`
    bytes after the pointer `base`; `wide` casts go through void *, and with `plain` there is no
    cast. In a constant the element is number `at` of the array `symbol`; with `cast` the array has
    another type than the parameter.
    """

    kind: ClassVar[str] = "address"
    rows: ClassVar[bool] = False
    type: str
    const: bool
    base: str = ""
    offset: Leaf | None = None
    wide: bool = False
    plain: bool = False
    symbol: Leaf | None = None
    cast: bool = False
    at: Leaf | None = None
    steps: tuple[tuple[str, Leaf], ...] = ()


@dataclass(frozen=True)
class Braces:
    """An initialiser: members of a struct by name, or elements of an array, whose names are ''."""

    kind: ClassVar[str] = "braces"
    members: tuple[tuple[str, Node], ...]

    @property
    def short(self) -> bool:
        return sum(len(name) for name, _ in self.members) <= _SHORT

    @property
    def rows(self) -> bool:
        """Whether it is an array of structs, which stand one on a line."""
        return bool(self.members) and all(
            not name and isinstance(value, Braces) for name, value in self.members
        )

    @property
    def lines(self) -> tuple[tuple[tuple[str, Node], ...], ...]:
        """The members line by line. A struct of few members is one line; otherwise members that
        belong together, such as `input_h`, `input_w` and `input_c`, share a line.
        """
        if len(self.members) <= _FEW:
            return (self.members,)
        lines: list[list[tuple[str, Node]]] = []
        before = ""
        for stem, group in groupby(self.members, _stem):
            members = list(group)
            several = stem if len(members) > 1 or isinstance(members[0][1], Braces) else ""
            if several or before or not lines:
                lines.append([])
            lines[-1] += members
            before = several
        return tuple(map(tuple, lines))


def _stem(member: tuple[str, Node]) -> str:
    name, value = member
    return name if isinstance(value, Braces) else name.rpartition("_")[0]


@dataclass(frozen=True)
class Object:
    """A variable in the function's body; an array of `type` if `array`."""

    kind: ClassVar[str] = "object"
    type: str
    name: str
    array: bool
    value: Braces
    static: bool = True


@dataclass(frozen=True)
class Loop:
    """A `for` around a call: `variable` goes from 0 to before `count`."""

    kind: ClassVar[str] = "loop"
    variable: str
    count: Leaf


Node: TypeAlias = Leaf | Word | Address | Braces


@dataclass(frozen=True)
class PrintedCall:
    """A call, with the variables whose addresses it takes."""

    kind: ClassVar[str] = "call"
    function: str
    template: str
    arguments: tuple[tuple[str, Node], ...]
    objects: tuple[Object, ...] = ()
    loops: tuple[Loop, ...] = ()
    status: bool = False
    note: str = ""

    @property
    def by_name(self) -> Mapping[str, Node]:
        """The arguments by parameter name, for templates that print an expression instead of a
        call.
        """
        return dict(self.arguments)


class Printer:
    """Turns the calls of one kernel into trees.

    `operand` gives the address of an operand, by its reference and its name in the function;
    `packed` the symbol and C type of a constant, by its key; `scratch` the address of the scratch;
    `number` an integer, by its name; `literal` a float as C.
    """

    def __init__(
        self,
        operand: Callable[[Input | Output, str], Node],
        packed: Callable[[Packed, str], Node],
        scratch: Callable[[Scratch, str], Node],
        number: Callable[[int, str], Node],
        literal: Callable[[float], str],
    ) -> None:
        self._operand = operand
        self._packed = packed
        self._scratch = scratch
        self._number = number
        self._literal = literal

    def printed(self, call: KernelCall) -> PrintedCall:
        """The call as trees, with the variables whose addresses it takes."""
        objects: list[Object] = []
        arguments = tuple(
            (name, self._argument(name, value, objects)) for name, value in call.arguments.items()
        )
        return PrintedCall(
            call.function,
            call.template,
            arguments,
            tuple(objects),
            tuple(Loop(x.variable, Leaf("count", NUMBER, str(x.count))) for x in call.loops),
            call.status,
            call.note,
        )

    def _argument(self, name: str, value: Argument, objects: list[Object]) -> Node:
        if isinstance(value, Struct):
            prefix = f"{name}_" if value.type.startswith(_CMSIS_TYPES) else ""
            braces = self._members(prefix, value.members, objects)
            objects.append(Object(value.type, name, False, braces))
            return Word(f"&{name}")
        return self._value(name, value, objects)

    def _members(
        self, prefix: str, members: Mapping[str, Argument], objects: list[Object]
    ) -> Braces:
        return Braces(
            tuple(
                (name, self._value(f"{prefix}{name}", value, objects))
                for name, value in members.items()
            )
        )

    def _value(self, name: str, value: Argument, objects: list[Object]) -> Node:
        match value:
            case int() | np.integer():
                return self._number(int(value), name)
            case float():
                return Word(self._literal(value))
            case Symbol():
                return Word(value.name)
            case Input() | Output():
                return self._operand(value, name)
            case Packed():
                return self._packed(value, name)
            case Scratch():
                return self._scratch(value, name)
            case Struct():
                return self._members(f"{name}_", value.members, objects)
            case Row():
                return self._elements(name, value.values, objects)
            case Items():
                symbol = name if all(o.name != name for o in objects) else f"{name}_{len(objects)}"
                braces = self._elements(name, value.values, objects)
                objects.append(Object(value.element, symbol, True, braces))
                return Word(symbol)

    def _elements(self, name: str, values: Sequence[Argument], objects: list[Object]) -> Braces:
        each = (
            self._members("", value.members, objects)
            if isinstance(value, Struct)
            else self._value(name, value, objects)
            for value in values
        )
        return Braces(tuple(("", value) for value in each))


@dataclass(frozen=True)
class Column:
    """A member of the struct that describes a block. `values` are C literals, one per block; with
    `unit` they count units of so many bytes.
    """

    name: str
    c_type: str
    width_bytes: int
    values: tuple[str, ...]
    unit: int = 1

    @property
    def declaration(self) -> str:
        return f"{self.c_type}{'' if self.c_type.endswith('*') else ' '}{self.name}"

    @property
    def expression(self) -> str:
        """The expression for the block's value in the function's body."""
        member = f"{_BLOCK}->{self.name}"
        return f"{self.unit} * {member}" if self.unit > 1 else member


Body: TypeAlias = tuple[PrintedCall, ...]


def share(bodies: Sequence[Body]) -> Iterator[tuple[tuple[int, ...], tuple[Column, ...], Body]]:
    """Group bodies whose trees differ in leaves alone.

    Each group has the places of its bodies, the columns of its table, and one tree for all of them.
    """
    groups: dict[Body, list[int]] = {}
    for place, body in enumerate(bodies):
        form = _mapped(body, lambda leaf: replace(leaf, text="", symbol=""))
        groups.setdefault(form, []).append(place)
    for places in groups.values():
        columns, body = _columns([bodies[place] for place in places])
        yield tuple(places), columns, with_storage(body)


def named(body: Body, parameters: Callable[[str], Sequence[str]]) -> Body:
    """The body, with its arguments named where the text does not name them: `/*pixels=*/64`.

    `parameters` gives the names of a function's parameters in the order of its declaration, or none
    where there is no such declaration. clang-tidy holds comments of this form against declarations
    (bugprone-argument-comment). Pointers to tensors and constants have no comment. The body must be
    one that `share` has made, because a named argument is no leaf any more.
    """
    return tuple(
        replace(call, arguments=tuple(_named(call, parameters(call.function)))) for call in body
    )


def _named(call: PrintedCall, parameters: Sequence[str]) -> Iterator[tuple[str, Node]]:
    """The arguments, which a plain call gives in the order of `parameters`. Another template gives
    them in an order of its own, by their names.
    """
    if call.template != "call" or not parameters:
        parameters = [name if name in parameters else "" for name, _ in call.arguments]
    for parameter, (name, value) in zip(parameters, call.arguments, strict=True):
        text = _text(value)
        says_so = text in ("", parameter, f"&{parameter}", f"{_BLOCK}->{parameter}")
        plain = not parameter or says_so or text.startswith("&")
        yield name, value if plain else Word(f"/*{parameter}=*/{text}")


def _text(node: Node) -> str:
    """A leaf or a word as C; '' for another node."""
    match node:
        case Leaf():
            return node.column or node.text
        case Word():
            return node.text
        case _:
            return ""


def symbols(body: Body) -> Iterator[str]:
    """The constants that a body points to, in the order in which they are printed."""
    names = (leaf.text if leaf.form == POINTER else leaf.symbol for leaf in _leaves(body))
    return (name for name in names if name)


def _columns(bodies: Sequence[Body]) -> tuple[tuple[Column, ...], Body]:
    """Columns for the leaves that differ between bodies of one form, and the body that reads them.

    Equal columns are one.
    """
    each = [tuple(_leaves(body)) for body in bodies]
    column_of: dict[tuple[str, str, tuple[str, ...]], Column] = {}
    taken: set[str] = set()
    expressions: list[str] = []
    for index, leaf in enumerate(each[0]):
        row = tuple(leaves[index].text for leaves in each)
        if len(set(row)) == 1:
            expressions.append("")
            continue
        key = (NUMBER if leaf.form == SIZE else leaf.form, leaf.type, row)
        column = column_of.get(key)
        if column is None:
            column = _column(_free(leaf.name, taken), leaf, row)
            column_of[key] = column
        expressions.append(column.expression)
    values = iter(expressions)
    body = _mapped(bodies[0], lambda leaf: replace(leaf, column=next(values)))
    return tuple(sorted(column_of.values(), key=lambda column: -column.width_bytes)), body


def _free(name: str, taken: set[str]) -> str:
    free, count = name, 1
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    taken.add(free)
    return free


def _column(name: str, leaf: Leaf, row: tuple[str, ...]) -> Column:
    if leaf.form == POINTER:
        return Column(name, f"const {leaf.type} *", 4, row)
    numbers = [int(value) for value in row]
    unit = gcd(*numbers) if leaf.form == OFFSET else 1
    if unit > 1 and _width(numbers) == _width([n // unit for n in numbers]):
        unit = 1
    numbers = [n // unit for n in numbers]
    width = _width(numbers)
    signed = min(numbers) < 0 or (width == 4 and leaf.form == NUMBER)
    c_type = f"{'' if signed else 'u'}int{8 * width}_t"
    return Column(name, c_type, width, tuple(map(str, numbers)), unit)


def size_column(name: str, numbers: Sequence[int]) -> Column:
    """A column of numbers that are not below 0, in the smallest type that holds them."""
    return _column(name, Leaf(name, SIZE, ""), tuple(map(str, numbers)))


def _width(numbers: Sequence[int]) -> int:
    """Bytes of the smallest unsigned type that holds all values."""
    low, high = min(numbers), max(numbers)
    for width in (1, 2):
        values = 256**width
        if (low >= 0 and high < values) or (low >= -values // 2 and high < values // 2):
            return width
    return 4


def with_storage(body: Body) -> Body:
    """The body, in which objects that depend on the arena or on the block are no longer static."""
    return tuple(
        replace(
            call,
            objects=tuple(_stored(call.objects)),
        )
        for call in body
    )


def _stored(objects: Sequence[Object]) -> Iterator[Object]:
    automatic: set[str] = set()
    for one in objects:
        static = not any(_varies(value, automatic) for _, value in one.value.members)
        if not static:
            automatic |= {one.name, f"&{one.name}"}
        yield replace(one, static=static)


def _varies(node: Node, automatic: set[str]) -> bool:
    match node:
        case Leaf():
            return bool(node.column)
        case Word():
            return node.varies or node.text in automatic
        case Address():
            held = [node.symbol, node.at, *(count for _, count in node.steps)]
            return node.offset is not None or any(leaf.column for leaf in held if leaf)
        case Braces():
            return any(_varies(value, automatic) for _, value in node.members)


def _leaves(body: Body) -> Iterator[Leaf]:
    leaves: list[Leaf] = []

    def keep(leaf: Leaf) -> Leaf:
        leaves.append(leaf)
        return leaf

    _mapped(body, keep)
    yield from leaves


def _mapped(body: Body, change: Callable[[Leaf], Leaf]) -> Body:
    """The trees with every leaf changed, in the order in which they are printed."""
    return tuple(
        replace(
            call,
            objects=tuple(replace(o, value=_braces(o.value, change)) for o in call.objects),
            loops=tuple(replace(loop, count=change(loop.count)) for loop in call.loops),
            arguments=tuple((name, _node(value, change)) for name, value in call.arguments),
        )
        for call in body
    )


def _braces(braces: Braces, change: Callable[[Leaf], Leaf]) -> Braces:
    return Braces(tuple((name, _node(value, change)) for name, value in braces.members))


def _node(node: Node, change: Callable[[Leaf], Leaf]) -> Node:
    match node:
        case Leaf():
            return change(node)
        case Word():
            return node
        case Address():
            return replace(
                node,
                offset=None if node.offset is None else change(node.offset),
                symbol=None if node.symbol is None else change(node.symbol),
                at=None if node.at is None else change(node.at),
                steps=tuple((variable, change(count)) for variable, count in node.steps),
            )
        case Braces():
            return _braces(node, change)
