"""Calls of blocks that share a function: `toolchain/codegen/calls.py`, `share` and its columns."""

from __future__ import annotations

from dataclasses import replace

from toolchain.codegen.calls import (
    NUMBER,
    OFFSET,
    POINTER,
    SIZE,
    Address,
    Body,
    Braces,
    Column,
    Leaf,
    Loop,
    Node,
    Object,
    PrintedCall,
    Word,
    named,
    share,
    symbols,
)
from toolchain.codegen.environment import environment
from toolchain.kernels import c_sources, cmsis_nn, runtime_c


def number(name: str, value: int) -> Leaf:
    return Leaf(name, NUMBER, str(value))


def place(name: str, offset: int) -> Address:
    return Address("int8_t", True, base="arena", offset=Leaf(name, OFFSET, str(offset)))


def constant(name: str, symbol: str, element: str = "int8_t") -> Address:
    return Address(element, True, symbol=Leaf(name, POINTER, symbol, element))


def call(*arguments: tuple[str, Node], objects: tuple[Object, ...] = ()) -> PrintedCall:
    return PrintedCall("f", "call", arguments, objects)


def struct(name: str, array: bool = False, **members: Node) -> Object:
    return Object(f"{name}_t", name, array, Braces(tuple(members.items())))


def table(*bodies: Body) -> tuple[dict[str, tuple[str, tuple[str, ...]]], str]:
    """The columns of bodies that share a function, and the text of the function's body."""
    ((places, columns, body),) = share(bodies)
    assert places == tuple(range(len(bodies)))
    return {c.name: (c.c_type, c.values) for c in columns}, printed(body)


def printed(body: Body) -> str:
    return environment().get_template("ops/body.c.j2").render(calls=body)


def test_numbers_that_differ_become_columns_of_the_smallest_type() -> None:
    def body(h: int, x: int, y: int) -> Body:
        inner = Braces((("x", number("w_x", x)),))
        made = struct("a", h=number("h", h), w=inner, y=number("y", y), z=number("z", 5))
        return (call(("a", Word("&a")), ("n", number("n", 7)), objects=(made,)),)

    columns, text = table(body(3, -7, 70_000), body(9, 6, 3))
    assert columns == {
        "y": ("int32_t", ("70000", "3")),
        "h": ("uint8_t", ("3", "9")),
        "w_x": ("int8_t", ("-7", "6")),
    }
    assert ".h = block->h" in text and ".x = block->w_x" in text and ".z = 5" in text
    assert text.endswith("f(&a, 7);\n")


def test_wide_columns_come_first_so_that_the_struct_has_no_holes() -> None:
    rows = [(1, 1, 1), (2, 300, 70_000)]
    bodies = [
        (call(*((n, number(n, v)) for n, v in zip("abc", row, strict=True))),) for row in rows
    ]
    columns, _ = table(*bodies)
    assert list(columns.items()) == [
        ("c", ("int32_t", ("1", "70000"))),
        ("b", ("uint16_t", ("1", "300"))),
        ("a", ("uint8_t", ("1", "2"))),
    ]


def test_two_columns_of_one_name_are_numbered() -> None:
    bodies = [(call(("n", number("n", a)), ("m", number("n", b))),) for a, b in ((3, 5), (4, 9))]
    columns, text = table(*bodies)
    assert columns == {"n": ("uint8_t", ("3", "4")), "n_2": ("uint8_t", ("5", "9"))}
    assert text == "f(block->n, block->n_2);\n"


def test_offsets_count_in_the_largest_unit_that_makes_them_narrower() -> None:
    columns, text = table(*((call(("x", place("input", n))),) for n in (96, 131_072)))
    assert columns == {"input": ("uint16_t", ("3", "4096"))}
    assert text == "f((const int8_t *)(arena + 32 * block->input));\n"
    columns, text = table(*((call(("x", place("input", n))),) for n in (96, 128)))
    assert columns == {"input": ("uint8_t", ("96", "128"))}
    assert text == "f((const int8_t *)(arena + block->input));\n"


def test_numbers_do_not_count_in_units() -> None:
    """A unit is for bytes of the arena: a number is written as the kernel gets it."""
    columns, _ = table(*((call(("n", number("n", n))),) for n in (96, 131_072)))
    assert columns == {"n": ("int32_t", ("96", "131072"))}


def test_sizes_are_unsigned_and_constants_pointers() -> None:
    bodies = [
        (call(("w", constant("weights", w)), ("n", Leaf("size_bytes", SIZE, n))),)
        for w, n in (("a", "70000"), ("b", "1"))
    ]
    columns, text = table(*bodies)
    assert columns == {
        "weights": ("const int8_t *", ("a", "b")),
        "size_bytes": ("uint32_t", ("70000", "1")),
    }
    assert text == "f(block->weights, block->size_bytes);\n"
    assert [list(symbols(body)) for body in bodies] == [["a"], ["b"]]


def test_equal_columns_are_one_unless_their_forms_differ() -> None:
    def body(n: int) -> Body:
        size = Leaf("bytes", SIZE, str(n))
        return (
            call(("a", number("a", n)), ("b", number("b", n)), ("s", size), ("x", place("x", n))),
        )

    columns, text = table(body(5), body(8))
    assert columns == {"a": ("uint8_t", ("5", "8")), "x": ("uint8_t", ("5", "8"))}
    assert text == "f(block->a, block->a, block->a, (const int8_t *)(arena + block->x));\n"


def test_objects_that_depend_on_the_block_are_not_static() -> None:
    """Nor are those that hold one of them, or a place in the arena."""

    def body(n: int) -> Body:
        objects = (
            struct("items", array=True, **{"": number("n", n)}),
            struct("holder", items=Word("items"), m=number("m", 1)),
            struct("outer", holder=Word("&holder")),
            struct("where", at=place("input", 4)),
            struct("same", k=number("k", 2)),
        )
        return (call(("p", Word("&outer")), ("q", Word("&same")), objects=objects),)

    ((_, _, shared),) = share([body(1), body(2)])
    assert {o.name: o.static for o in shared[0].objects} == {
        "items": False,
        "holder": False,
        "outer": False,
        "where": False,
        "same": True,
    }
    ((_, columns, alone),) = share([body(1)])
    assert columns == ()
    assert {o.name for o in alone[0].objects if not o.static} == {"where"}


def test_loops_and_steps_may_differ_between_blocks() -> None:
    def body(count: int, step: int) -> Body:
        x = replace(place("input", 0), steps=(("y", number("input_step", step)),))
        return (replace(call(("x", x)), loops=(Loop("y", number("count", count)),)),)

    columns, text = table(body(3, 40), body(5, 1))
    assert columns == {"count": ("uint8_t", ("3", "5")), "input_step": ("uint8_t", ("40", "1"))}
    assert text == (
        "for (int32_t y = 0; y < block->count; y++) {\n"
        "    f((const int8_t *)arena + y * block->input_step);\n"
        "}\n"
    )


def test_bodies_of_other_form_have_a_function_of_their_own() -> None:
    one = [(call(("n", number("n", n))),) for n in (1, 2)]
    other = (call(("n", number("n", 1)), ("x", place("x", 0))),)
    groups = [(places, columns) for places, columns, _ in share([one[0], other, one[1]])]
    assert groups == [((0, 2), (Column("n", "uint8_t", 1, ("1", "2")),)), ((1,), ())]


def test_arguments_that_do_not_say_what_they_are_have_the_names_of_the_declaration() -> None:
    def body(rows: int, units: int) -> Body:
        return (
            call(
                ("rows", number("rows", rows)),
                ("units", number("units", units)),
                ("size", number("size", rows)),
                ("high", Word("0.5f")),
                ("scale", Word("net_number(3)", varies=True)),
                ("bias", Word("NULL")),
                ("params", Word("&params")),
                ("loops", Word("loops")),
                ("input", place("input", 8)),
                ("table", constant("table", "net_table")),
            ),
        )

    ((_, _, shared),) = share([body(1, 16), body(2, 16)])
    declared = ("rows", "depth", "count", "most", "scale", "bias", "p", "loops", "in", "entries")
    text = (
        "f(block->rows, /*depth=*/16, /*count=*/block->rows, /*most=*/0.5f, "
        "/*scale=*/net_number(3), /*bias=*/NULL, &params, loops, (const int8_t *)(arena + 8), "
        "net_table);"
    )
    assert printed(named(shared, lambda _: declared)).split() == text.split()
    assert named(shared, lambda _: ()) == shared


def test_a_template_that_calls_within_an_expression_names_what_the_function_takes() -> None:
    arguments = [(name, number(name, 7)) for name in ("size", "start", "shift")]
    body: Body = (PrintedCall("f", "sum_s8", tuple(arguments)),)
    ((only,),) = (named(body, lambda _: ("total", "shift")),)
    assert only.arguments == (*arguments[:2], ("shift", Word("/*shift=*/7")))


def test_each_function_that_headers_declare_has_names_for_its_parameters() -> None:
    for tree in (runtime_c.tree(), cmsis_nn.tree(cmsis_nn.find())):
        names = {f: c_sources.parameter_names(f, tree) for f in c_sources.declared(tree)}
        assert all(name.isidentifier() for listed in names.values() for name in listed)
        assert sum(map(bool, names.values())) > 100
    assert c_sources.parameter_names("thimble_softmax_s8", runtime_c.tree())[2:4] == (
        "rows",
        "columns",
    )
    assert c_sources.parameter_names("memcpy", cmsis_nn.tree(cmsis_nn.find())) == ()
