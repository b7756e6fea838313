"""Weights outside of the code: where they lie, and new ones for code that is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolchain.boards import board as find_board
from toolchain.codegen import generate
from toolchain.codegen.blob import Layout, is_intact, read_head
from toolchain.deployment.folder import check_result
from toolchain.deployment.measurements import cost_model
from toolchain.errors import InputError, UnsupportedError
from toolchain.files.bounded import read_bounded
from toolchain.files.formats import WEIGHTS
from toolchain.files.records import read_json, record
from toolchain.frontends.model_file import LARGEST_FILE_BYTES
from toolchain.ir import External, Sources
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.planner import plan_model
from toolchain.planning.fetches import with_fetches
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.progress import Report, silent

WEIGHTS_FILE = "weights.json"
_DIFFERENCES_SHOWN = 6


def external_options(options: PlanOptions, external: External) -> PlanOptions:
    """The options for code without constants: the start-up copies none.

    Where they are fetched, operators stay whole, with the kernels of the fewest constants, in an
    arena in one piece. Raises InputError for options that ask for something else then.
    """
    options = replace(options, copy_constants=False)
    if not external.fetched:
        return options
    if options.splits:
        raise InputError(
            "--weights fetched keeps operators whole (each block would fetch its constants again): "
            "leave out --ram and --max-slowdown"
        )
    if options.optimise is Optimise.SPEED:
        raise InputError(
            "--weights fetched takes the kernels of the fewest constants, which lie in RAM: leave "
            "out --optimise speed"
        )
    return replace(options.unsplit, one_bank=True, optimise=Optimise.SIZE)


def external_plan(plan: Plan, external: External) -> Plan:
    """The plan with places for fetched constants, and without flash for those that lie elsewhere.

    Raises UnsupportedError for a model whose constants are needed beside its operators.
    """
    if external.fetched:
        if plan.graph.states or any(end.tensor.is_constant for end in plan.outputs):
            reason = "keeps state" if plan.graph.states else "has an output that is a constant"
            raise UnsupportedError(
                f"{plan.graph.name} {reason}, whose bytes no operator fetches",
                remedies=["--weights external, in memory that the core can read"],
            )
        plan = with_fetches(plan)
    return replace(plan, weight_bytes=0) if external.address is not None else plan


def placed(sources: Sources, external: External | None) -> Sources:
    """The sources, whose weights another tool puts where `external` says."""
    if external is None or sources.weights is None:
        return sources
    return replace(sources, weights=replace(sources.weights, address=external.address))


@dataclass(frozen=True)
class _Record:
    """The content of WEIGHTS_FILE: how the code was made, and what it expects of its weights."""

    name: str
    board: str
    options: PlanOptions
    layout: Mapping[str, str]
    fetched: bool = False


def save_layout(sources: Sources, board: str, options: PlanOptions, folder: Path) -> None:
    """Write WEIGHTS_FILE, by which `new_weights` makes blobs for this code."""
    assert sources.weights is not None
    fields = {
        "name": sources.name,
        "board": board,
        "options": asdict(options),
        "layout": dict(sources.weights.layout),
        "fetched": sources.weights.fetched,
    }
    text = json.dumps(fields, indent=1) + "\n"
    (folder / WEIGHTS_FILE).write_text(text, encoding="utf-8")


def _code_in(folder: Path) -> _Record:
    check_result(folder)
    file = folder / WEIGHTS_FILE
    if not file.exists():
        raise InputError(
            f"{folder} holds no code whose weights lie elsewhere: make it with "
            "`thimble compile --weights external`"
        )
    return record(_Record, read_json(file), str(file))


def new_weights(
    model: str | Path,
    folder: str | Path,
    cmsis_nn_folder: Path | None = None,
    report: Report = silent,
) -> bytes:
    """The blob of another model's weights for the code in `folder`.

    The model is planned as that code was. Raises UnsupportedError, which names what differs, if the
    code expects other weights than this model has: other shapes, kernels or inputs and outputs.
    """
    code = _code_in(Path(folder))
    target = find_board(code.board)
    plan = plan_model(model, target.name, code.options, report, cost_model(target.name))
    plan = external_plan(plan, External(fetched=code.fetched))
    root = cmsis_nn.find(cmsis_nn_folder, report=report)
    sources = generate(plan, target.core, root, name=code.name, external=True)
    assert sources.weights is not None
    wanted, given = Layout(tuple(code.layout.items())), Layout(sources.weights.layout)
    if wanted.digest != given.digest:
        raise _refused(str(model), str(folder), wanted.differences(given))
    return sources.weights.data


def _refused(model: str, folder: str, differences: tuple[str, ...]) -> UnsupportedError:
    shown = "\n".join(f"  {part}" for part in differences[:_DIFFERENCES_SHOWN])
    more = len(differences) - _DIFFERENCES_SHOWN
    return UnsupportedError(
        f"the code in {folder} cannot take the weights of {model}; what differs:\n{shown}"
        + (f"\n  and {more} more" if more > 0 else ""),
        remedies=[
            "a model of the same architecture, with the same quantisation of inputs and outputs",
            "new code: thimble compile --weights external",
        ],
    )


def check_weights(blob: str | Path, folder: str | Path) -> dict[str, Any]:
    """The fields of a blob's header, if the code in `folder` takes it.

    Raises InputError, with the reason that the code would give, if it does not.
    """
    code, file = _code_in(Path(folder)), Path(blob)
    data = read_bounded(file, LARGEST_FILE_BYTES)
    head = read_head(data)
    if head is None:
        raise InputError(f"{file} is no blob of weights (ERROR_WEIGHTS_NO_BLOB)")
    WEIGHTS.check(head.format, f"{file} (ERROR_WEIGHTS_VERSION)")
    if head.layout != Layout(tuple(code.layout.items())).digest.hex():
        raise InputError(
            f"{file} is for other code than that in {folder} (ERROR_WEIGHTS_MODEL): `thimble "
            f"weights MODEL --for {folder}` makes one, or says what differs"
        )
    if len(data) < head.size_bytes:
        raise InputError(
            f"{file} is cut off: {len(data):,} of {head.size_bytes:,} bytes (ERROR_WEIGHTS_SHORT)"
        )
    if not is_intact(data):
        raise InputError(f"{file} is damaged: its checksum differs (ERROR_WEIGHTS_DAMAGED)")
    return asdict(head)


def intel_hex(data: bytes, address: int) -> str:
    """Intel HEX of these bytes at an address, for an external loader."""
    lines, upper = [], -1
    for at in range(0, len(data), 16):
        place = address + at
        if place >> 16 != upper:
            upper = place >> 16
            lines.append(_hex_record(0, 4, upper.to_bytes(2, "big")))
        lines.append(_hex_record(place & 0xFFFF, 0, data[at : at + 16]))
    return "\n".join([*lines, _hex_record(0, 1, b"")]) + "\n"


def _hex_record(place: int, kind: int, data: bytes) -> str:
    body = bytes((len(data), place >> 8, place & 0xFF, kind)) + data
    return f":{body.hex().upper()}{-sum(body) & 0xFF:02X}"
