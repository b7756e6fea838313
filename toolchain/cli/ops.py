"""`thimble ops`: the operators that can be compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from rich.box import SIMPLE_HEAD

from toolchain.cli._console import output_console
from toolchain.cli._groups import argument, grouped, option
from toolchain.cli._output import JsonOption, tell_json, write_text
from toolchain.errors import InputError
from toolchain.frontends import tflite
from toolchain.frontends.onnx import operators as onnx
from toolchain.frontends.tflite.unread import UNREAD
from toolchain.frontends.unread import lines
from toolchain.report.kinds import Kind, kinds, markdown, matching
from toolchain.report.width import Shown

_UNREAD = {"TFLite": partial(lines, UNREAD), "ONNX": partial(lines, onnx.reasons())}
_READ_AWAY = {"TFLite": tflite.READ_AWAY, "ONNX": onnx.read_away()}


@grouped
def command(
    names: list[str] | None = argument(
        "NAME",
        "Only operators whose name, here or in TFLite or ONNX, contains one of these.",
        default=None,
    ),
    table: str | None = option(
        None,
        "Write the whole table as Markdown (as in docs/operators.md) instead of printing it.",
        "--markdown",
        unit="FILE|-",
    ),
    json: JsonOption = None,
) -> None:
    """List the operators: names in TFLite and ONNX, types, kernels, limits.

    "in place": the operator may write over an input. "diagonal": its output may begin some bytes
    below an input that it still reads. "view": it owns no memory where the data need not move.
    "splits": the axes along which the operator can be computed block by block when the network does
    not fit. "sums": it can also be split along axes that it sums over.

    Example: `thimble ops conv pool`
    """
    if table is not None:
        write_text(table, markdown(_READ_AWAY, _UNREAD))
        return
    wanted = names or ()
    listed = kinds(wanted)
    read_away = {form: matching(away, wanted) for form, away in _READ_AWAY.items()}
    if not listed and not any(read_away.values()):
        raise InputError(
            f"no operator has a name that contains {' or '.join(map(repr, wanted))}; "
            "`thimble ops` lists all"
        )
    operators = [asdict(kind) for kind in listed]
    if tell_json(json, {"operators": operators, "read_away": read_away}):
        _print(listed, read_away)


def _print(listed: Sequence[Kind], read_away: Mapping[str, Sequence[str]]) -> None:
    console = output_console()
    if listed:
        more = ("memory", "kernels", "limits", "ONNX")
        table = Shown(header_style="bold", box=SIMPLE_HEAD, pad_edge=False, first_to_go=more)
        for heading in ("operator", "TFLite", "ONNX", "kernels", "memory", "limits"):
            table.add_column(heading, overflow="fold", no_wrap=heading == "operator")
        for kind in listed:
            lists = (kind.tflite, kind.onnx, kind.kernels, kind.memory)
            table.add_row(kind.name, *(", ".join(values) for values in lists), kind.limits)
        console.print(table)
    for form, away in read_away.items():
        if away:
            console.print(f"{form}, computed or renamed while reading: {', '.join(away)}")
