"""The stack of functions without figures of the compiler, from their instructions."""

from __future__ import annotations

import pytest

from toolchain.device.stack import _Label, _label


@pytest.mark.parametrize(
    ("lines", "label"),
    [
        # newlib's and libgcc's, as objdump prints them
        (["push\t{r4, r5, lr}", "vpush\t{d8-d9}", "pop\t{r4, r5, pc}"], (28, set(), False)),
        (["str.w\tlr, [sp, #-8]!", "ldr.w\tpc, [sp], #8"], (8, set(), False)),
        (["stmdb\tsp!, {r0, r1}", "sub\tsp, #16", "bx\tlr"], (24, set(), False)),
        (["sub.w\tsp, sp, #512", "beq.n\t8012 <near+0x4>", "bx\tlr"], (512, {"near"}, False)),
        (["vstmdb\tsp!, {d0-d1}", "bl\t8000 <other>", "b.n\t8004 <own>"], None),
        (["sub\tsp, sp, r3", "bx\tlr"], (None, set(), False)),
        (["cbz\tr0, 8004 <far>", "movs\tr0, #1"], (0, {"far", "next"}, False)),
        (["blx\tr3", "bx\tlr"], (0, set(), True)),
        (["ldr.w\tpc, [pc]"], (0, set(), True)),
        (["mov\tpc, r2"], (0, {"next"}, False)),
    ],
)
def test_stack_of_instructions(
    lines: list[str], label: tuple[int | None, set[str], bool] | None
) -> None:
    lowered, branches, by_address = label or (16, {"other", "own"}, False)
    made = _label([(name, rest) for name, _, rest in (x.partition("\t") for x in lines)], "next")
    assert made == _Label(lowered, frozenset(branches), by_address)
