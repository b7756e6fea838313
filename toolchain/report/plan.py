"""A plan as the JSON that others rely on, and as a few lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table

from toolchain.boards import board, naming
from toolchain.files.records import encode
from toolchain.memory.banks import may_spread
from toolchain.memory.firmware_size import MemoryNeed
from toolchain.memory.plan import NEARLY_FREE, Plan
from toolchain.ops.detection.decode_boxes import KIND, OUTPUTS
from toolchain.ops.movement.gather import index_limits
from toolchain.ops.movement.input_rows import rows_of
from toolchain.ops.preference import Preference
from toolchain.packages import SOLVER
from toolchain.report.blocks import blocks, constant_bytes, moved_bytes
from toolchain.report.buffers import planned_buffers
from toolchain.report.code import code_json
from toolchain.report.ends import end_json
from toolchain.report.latency import Latency, longest_call, per_turn
from toolchain.report.planned import PlannedBank, PlannedOperator, PlannedTensor, PlannedTime
from toolchain.report.splits import splits_of
from toolchain.report.suspicions import warnings_json
from toolchain.report.text import round_size, share, size
from toolchain.report.time import microjoules

_NAMED = 3
"""Operators with one reason that are named."""

_SPLIT_NAMED = 6
"""Operators of as many blocks that a line names."""


def plan_json(plan: Plan, need: MemoryNeed, latency: Latency) -> dict[str, Any]:
    """The fields of `thimble plan --json` and `thimble compile --json`, except the seconds."""
    graph = plan.graph
    return {
        "model": graph.name,
        "model_sha256": plan.about.sha256,
        "labels": {output: list(names) for output, names in plan.about.labels.items()},
        **naming(plan.board),
        "scheduler": plan.schedule.method,
        "allocator": plan.arena.allocator,
        **kernels_json(plan),
        "peak_bytes": plan.schedule.peak_bytes,
        "arena_bytes": plan.arena.size_bytes,
        "arena_banks": [
            encode(PlannedBank(part.bank, part.start_bytes, part.size_bytes))
            for part in plan.arena.parts
        ],
        "lower_bound_bytes": plan.schedule.lower_bound_bytes,
        "proved_optimal": plan.schedule.proved_optimal
        and plan.arena.size_bytes == plan.schedule.peak_bytes,
        "ram_bytes": need.ram_bytes,
        "flash_bytes": need.flash_bytes,
        "code_bytes": need.code_bytes,
        "weight_bytes": plan.weight_bytes,
        "code_predicted": code_json(plan),
        "memory_estimated": need.estimated,
        "unsplit_arena_bytes": plan.unsplit_bytes or plan.arena.size_bytes,
        "slowdown_percent": round(100 * plan.slowdown, 4),
        "search_stopped": plan.search_stopped,
        "latency": _time_json(plan, latency),
        "longest_step": _longest_step(plan, latency),
        "macs": plan.macs,
        **warnings_json(plan),
        "removed": asdict(plan.removed),
        "flash_spent": asdict(plan.spent),
        "copied": asdict(plan.copied),
        "operators": encode(tuple(_operators(plan, latency))),
        "inputs": [end_json(end) for end in plan.inputs],
        "outputs": [end_json(end) for end in plan.outputs],
        **limits_json(plan),
        "boxes": boxes_json(plan),
        "input_by_rows": rows_json(plan),
        "states": [
            {"name": state.input, "bytes": graph.tensors[state.input].size_bytes}
            for state in graph.states
        ],
        "tensors": {
            name: encode(_tensor(plan, name, offset)) for name, offset in plan.arena.offsets.items()
        },
        "buffers": encode(tuple(planned_buffers(plan))),
    }


def _operators(plan: Plan, latency: Latency) -> Iterator[PlannedOperator]:
    """The steps in their order."""
    graph = plan.graph
    block_of = blocks(graph, plan.schedule.order)
    for step, index in enumerate(plan.schedule.order):
        op, made = graph.ops[index], plan.operators[index]
        inputs = dict.fromkeys(op.present_inputs())
        yield PlannedOperator(
            step=step,
            name=op.name,
            kind=op.kind,
            block=block_of[index],
            macs=made.macs,
            moved_bytes=moved_bytes(graph, index),
            scratch_bytes=made.scratch_bytes,
            live_bytes=plan.step_bytes[step],
            scratch_offset=plan.arena.scratch_offsets.get(op.name),
            constant_bytes=constant_bytes(graph, index),
            part_of=op.part_of,
            is_view=made.is_view,
            inputs=tuple(name for name in inputs if not graph.tensors[name].is_constant),
            outputs=tuple(op.outputs),
            functions=tuple(made.functions),
            count=latency.costs[index].count,
            basis=latency.costs[index].basis,
        )


def _tensor(plan: Plan, name: str, offset: int) -> PlannedTensor:
    tensor, live = plan.graph.tensors[name], plan.arena.lifetimes[name]
    return PlannedTensor(offset, tensor.size_bytes, tensor.shape, tensor.dtype.value, live)


def _time_json(plan: Plan, latency: Latency) -> dict[str, Any]:
    time: dict[str, Any] = encode(
        PlannedTime(
            total=latency.total,
            unit=latency.unit,
            measured_share=latency.measured_share,
            milliseconds=latency.milliseconds,
            estimated_microjoules=microjoules(plan.board, latency.total, latency.unit),
            basis=latency.basis,
            per_turn=per_turn(plan),
        )
    )
    return time if time["per_turn"] else {k: v for k, v in time.items() if k != "per_turn"}


def boxes_json(plan: Plan) -> dict[str, str] | None:
    """The outputs that hold the boxes of `--decode`; None without it."""
    op = next((op for op in plan.graph.ops if op.kind == KIND), None)
    return None if op is None else dict(zip(OUTPUTS, op.outputs, strict=True))


def limits_json(plan: Plan) -> dict[str, dict[str, int]]:
    """`index_limits`: for each input that chooses from a table, the table's length. Nothing where
    no input does."""
    limits = index_limits(plan.graph)
    return {"index_limits": dict(limits)} if limits else {}


def _longest_step(plan: Plan, latency: Latency) -> dict[str, Any] | None:
    """The longest call, in the latency's unit; None where nothing has code."""
    number = longest_call(latency)
    if number is None:
        return None
    op = plan.graph.ops[number]
    return {"operator": op.name, "kind": op.kind, "count": latency.counts[number]}


def kernels_json(plan: Plan) -> dict[str, Any]:
    """The field `kernels`: whose were asked for, which operators got others, and which are not
    exact."""
    return {
        "kernels": plan.lowered.preference.value,
        "other_kernels": [
            {"operator": op.name, "functions": list(op.functions), "why": op.instead}
            for op in plan.operators
            if op.instead
        ],
        "inexact_kernels": [
            {"operator": op.name, "functions": list(op.functions), "why": op.inexact}
            for op in plan.operators
            if op.inexact
        ],
    }


def kernel_lines(plan: Plan) -> tuple[str, ...]:
    """`kernels_json` as lines for people; none where no kernels were asked for."""
    wanted = plan.lowered.preference
    if wanted is Preference.AUTO:
        return ()
    others, inexact = (_by_reason(plan, field) for field in ("instead", "inexact"))
    calls = plan.calls
    count = sum(bool(op.instead) for op in plan.operators)
    lines = [f"Kernels of {wanted.value}: {calls - count} of {calls} operators."]
    lines += [f"  not for {names}: {why}" for why, names in others.items()]
    lines += [f"  may differ from the reference in {n}: {why}" for why, n in inexact.items()]
    return tuple(lines)


def split_lines(plan: Plan) -> tuple[str, ...]:
    """Lines on the RAM that splitting saves, and on the time beyond that of the quickest plan; none
    where nothing is split and no plan is quicker."""
    whole, arena = plan.unsplit_bytes, plan.arena.size_bytes
    slower = f"{plan.slowdown:.2%} slower than" if plan.slowdown else "as quick as"
    cost = f"{slower} the quickest plan"
    if not whole:
        less = f"Arena {arena:,} B, {cost} as predicted (--max-slowdown 0% takes that one)."
        return (less,) if plan.slowdown else ()
    limit = ", --max-slowdown sets another limit than 1%" if plan.slowdown <= NEARLY_FREE else ""
    beside = f"instead of {whole:,} B" if whole != arena else "as with operators whole"
    return (
        f"Split into blocks: arena {arena:,} B {beside}, {cost} as "
        f"predicted (--no-split keeps operators whole{limit}).",
        f"Split: {_split_operators(plan)}.",
    )


def rows_lines(plan: Plan, held_bytes: int = 0) -> tuple[str, ...]:
    """Lines on the RAM of an input that arrives by rows; none where none does.

    `held_bytes`: the copy of it that the linked firmware keeps.
    """
    pushed = rows_json(plan)
    if pushed is None:
        return ()
    blocks, rows, row_bytes = pushed["blocks"], pushed["rows"], pushed["row_bytes"]
    taken = f"Input {pushed['input']!r} arrives by rows: {rows:,} of {row_bytes:,} B"
    if blocks == 1:
        return (
            f"{taken}. All of them are kept until the last is there: no way was found to split "
            "what reads them within the limits (--max-slowdown sets another).",
        )
    most = pushed["most_rows"]
    lines = [f"{taken}, in {blocks:,} blocks of {most:,} or fewer; the arena holds no more."]
    if held_bytes:
        lines.append(
            f"This firmware holds the whole input beside, for the serial protocol: {held_bytes:,} "
            "B of RAM that are not counted here, and that the generated C does not need."
        )
    return tuple(lines)


def rows_json(plan: Plan) -> dict[str, Any] | None:
    """The input that arrives by rows, and in how many blocks; None where none does."""
    graph = plan.graph
    if graph.pushed is None:
        return None
    tensor = graph.tensors[graph.pushed.input]
    takers = [rows_of(graph.ops[index]) for index in graph.consumers[tensor.name]]
    return {
        "input": tensor.name,
        "rows": sum(taker.rows for taker in takers),
        "row_bytes": takers[0].row_elements * tensor.dtype.size_bytes,
        "blocks": len(takers),
        "most_rows": max(taker.rows for taker in takers),
    }


def _split_operators(plan: Plan) -> str:
    """The operators that are split, those of as many blocks together; the first few by name."""
    told = []
    for split in splits_of(plan.graph):
        more = len(split.operators) - _SPLIT_NAMED
        shown = ", ".join(split.operators[:_SPLIT_NAMED])
        shown += f" and {more} more" if more > 0 else ""
        told.append(f"{shown} into {split.blocks} {'block' if split.blocks == 1 else 'blocks'}")
    return "; ".join(told)


def removed_lines(plan: Plan) -> tuple[str, ...]:
    """Lines on channels left out of the model; none where nothing was."""
    removed = plan.removed
    if not removed.channels:
        return ()
    return (
        f"Removed {removed.channels:,} channels that cannot change an output: "
        f"{share(removed.macs, removed.macs + plan.macs)} of the model's MACs, "
        f"{size(removed.weight_bytes)} of constants (--keep-dead-channels keeps them).",
    )


def spent_lines(plan: Plan) -> tuple[str, ...]:
    """Lines on flash spent for time; none where nothing was spent."""
    spent = plan.spent
    if not spent.operators:
        return ()
    noun = "convolution" if spent.operators == 1 else "convolutions"
    return (
        f"{spent.operators} {noun} by Winograd's algorithm: {size(spent.weight_bytes)} more flash, "
        f"{spent.saved:,} {spent.unit} fewer, {share(spent.saved, spent.before)} as predicted "
        "(--optimise size refuses it, --flash limits it).",
    )


def _copies(plan: Plan) -> tuple[tuple[str, int, str], ...]:
    """Banks with copies: the name, the bytes, and the content."""
    copied = plan.copied
    constants = tuple((bank, taken, "constants") for bank, taken in copied.banks)
    code = ((copied.code_in, copied.code_bytes, "code"),) if copied.code_in else ()
    return (*constants, *code)


def copied_lines(plan: Plan) -> tuple[str, ...]:
    """Lines on copies in RAM; none where constants stay in flash."""
    copied = plan.copied
    if not copied.saved:
        return ()
    where = " and ".join(
        f"{size(taken)} of {content} to {bank}" for bank, taken, content in _copies(plan)
    )
    return (
        f"The start-up copies {where}: "
        f"{copied.saved:,} {copied.unit} fewer, {share(copied.saved, copied.before)} as predicted "
        "(--no-copies refuses it, --ram limits it, --optimise speed copies all that RAM holds).",
    )


def left_to_copy_lines(plan: Plan) -> tuple[str, ...]:
    """Lines on the copies that the user of a library makes; none where the plan has none."""
    copied = plan.copied
    if not copied.saved:
        return ()
    macros = " and ".join(f"THIMBLE_COPIED_{bank}" for bank, _ in copied.banks)
    define = f"define {macros}, and " if macros else ""
    return (
        f"This C copies nothing itself: {define}copy in your start-up, as docs/copies.md says; "
        f"without the copies an inference takes {copied.before:,} {copied.unit}, as predicted.",
    )


def _by_reason(plan: Plan, field: str) -> dict[str, str]:
    """The operators with each reason: their kind, function, and names as far as they are few."""
    by_reason: dict[tuple[str, str, str], list[str]] = {}
    for op in plan.operators:
        if why := getattr(op, field):
            by_reason.setdefault((why, op.kind, ", ".join(op.functions)), []).append(op.name)
    lines: dict[str, str] = {}
    for (why, kind, functions), names in by_reason.items():
        some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        text = f"{len(names)} {kind} by {functions} ({some})"
        lines[why] = f"{lines[why]}; {text}" if why in lines else text
    return lines


def memory_table(plan: Plan, need: MemoryNeed, ram_bytes: int, flash_bytes: int) -> Table:
    """The plan's needs beside the board's sizes (0: no limit)."""
    table = Table(title=f"{plan.graph.name} on {plan.board}", header_style="bold", title_style="")
    table.add_column("memory")
    table.add_column("needed", justify="right")
    table.add_column("of the board", justify="right")
    table.add_column("")
    guess = ", estimated" if need.estimated else ", as linked"
    copies = " + copies" if plan.copied.saved else ""
    rest = need.flash_bytes - need.code_bytes - plan.weight_bytes
    data = f" + {rest:,} B other data" if rest else ""
    parts = [
        (
            f"  in {part.bank}",
            part.size_bytes,
            0,
            "the hottest" if part is plan.arena.parts[0] else "",
        )
        for part in plan.arena.parts
    ]
    for name, used, available, note in (
        ("arena", plan.arena.size_bytes, 0, "activations and scratch"),
        *parts,
        *(("copies", taken, 0, f"{content}, in {bank}") for bank, taken, content in _copies(plan)),
        ("RAM", need.ram_bytes, ram_bytes, f"arena + data + stack{copies}{guess}"),
        ("weights", plan.weight_bytes, 0, "constants of the model"),
        (
            "flash",
            need.flash_bytes,
            flash_bytes,
            f"weights + {need.code_bytes:,} B code{data}{guess}",
        ),
    ):
        of = f"{share(used, available)} of {round_size(available)}" if available else "-"
        table.add_row(name, size(used), of, note)
    return table


def proof_line(plan: Plan) -> str:
    """A line on the proof of the arena, and on a search for ways to split that ended early."""
    if SOLVER.missing and may_spread(plan, board(plan.board)):
        does = "which spreads an arena over banks of RAM"
        return f"{_proved(plan)} CP-SAT, {does}, {SOLVER.absence}"
    if not plan.arena.proved_optimal and SOLVER.missing:
        return f"{_proved(plan)} CP-SAT, which may find less, {SOLVER.absence}"
    if plan.search_stopped:
        stopped = f"The search was stopped {plan.search_stopped}: this is the best it had found."
        return f"{_proved(plan)} {stopped}"
    return _proved(plan)


def _proved(plan: Plan) -> str:
    arena, bound = plan.arena.size_bytes, plan.schedule.lower_bound_bytes
    if arena == bound:
        return (
            f"The arena of {size(arena)} is proved minimal: no order of these operators needs less."
        )
    if plan.arena.parts:
        banks = " and ".join(part.bank for part in plan.arena.parts)
        return (
            f"Arena {size(arena)} over {banks}, the hottest tensors in the fastest bank; in one "
            f"piece no order needs less than {size(bound)} (--one-bank tries that)."
        )
    return (
        f"Arena {size(arena)}, peak of this order {size(plan.schedule.peak_bytes)}; no order of "
        f"these operators needs less than {size(bound)} (gap {share(arena - bound, arena)})."
    )
