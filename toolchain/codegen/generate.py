"""Plan to C: a header, a source file and a file of weights for one model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from toolchain.boards import Core
from toolchain.codegen.blob import layout_of, pack
from toolchain.codegen.boxes import boxes_of
from toolchain.codegen.cmsis_release import fitted
from toolchain.codegen.constants import ConstantTable
from toolchain.codegen.environment import environment
from toolchain.codegen.header import accessors
from toolchain.codegen.memory_map import memory_map
from toolchain.codegen.names import model_identifier
from toolchain.codegen.operators import code, operands
from toolchain.codegen.preprocess import functions, preprocess_files
from toolchain.codegen.steps import Costs, steps_of
from toolchain.codegen.writer import Writer
from toolchain.errors import InputError
from toolchain.ir import About, CodeOperator, ExternalWeights, Sources, Status
from toolchain.ir.sources import INFO_SUFFIX
from toolchain.ir.status import OF_ROWS, OF_STEPS, OF_WEIGHTS
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.kernels.c_sources import source_closure
from toolchain.memory.plan import Plan
from toolchain.preprocess.option import Preprocess
from toolchain.resources import RUNTIME_C
from toolchain.version import __version__

INFO_HEADER = "thimble_info.h"
PUBLIC_HEADERS = (INFO_HEADER, "thimble_span.hpp")
"""Headers that all models share. They lie beside each model's own."""
STATIC_ALIGNMENT_BYTES = 8
"""Alignment of uint64_t, which shares a union with the static arena."""
_INT_BYTES = 4
_CHECKS = ("thimble_check_weights",)
_CHECKS_FETCHED = ("thimble_check_weights_header", "thimble_weights_crc32")
_STRING_FUNCTIONS = frozenset({"memcpy", "memmove", "memset"})


def generate(
    plan: Plan,
    core: Core,
    cmsis_nn_folder: Path,
    *,
    name: str = "",
    costs: Costs | None = None,
    external: bool = False,
    preprocess: Preprocess | None = None,
) -> Sources:
    """C99 for `plan`, a header for C++17, and the kernels to link with them: `<name>.h`,
    `<name>.c`, `<name>_weights.h`, `<name>_info.c`, `<name>.hpp`, and the headers that all models
    share.

    `name` (by default the graph's) is made a C identifier and prefixes every symbol. With `costs`
    the model can also be run in steps. With `external` its constants lie in a blob outside of the
    code (`codegen.blob`). `preprocess` adds what makes the model's input, in files of its own. The
    text depends on the arguments only. Raises UnsupportedError if a call would touch bytes beyond
    its operands, MissingToolError if the source of a kernel is not found, InputError where
    `preprocess` does not suit the model.
    """
    if plan.lowered.core != core:
        raise ValueError(f"the plan is for core {plan.lowered.core.name}, not {core.name}")
    if plan.arena.alignment_bytes > STATIC_ALIGNMENT_BYTES:
        raise ValueError(f"C99 cannot align a static arena to {plan.arena.alignment_bytes} bytes")
    kernels = tuple(fitted(kernel, cmsis_nn_folder) for kernel in plan.lowered.kernels)
    plan = replace(plan, lowered=replace(plan.lowered, kernels=kernels))
    prefix = model_identifier(name or plan.graph.name)
    fetched = bool(plan.arena.fetch_bytes)
    plan = replace(plan, about=_about(plan, prefix, external=external, fetched=fetched))
    writer = Writer(plan, prefix, external=external, fetched=fetched)
    operators = writer.calls()
    trees = (cmsis_nn.tree(cmsis_nn_folder), runtime_c.tree())
    made = code(operators, plan.schedule.order, prefix, trees)
    fetch_of = {call.number: call.fetch for calls in operators for call in calls}
    step_of = {op: step for step, op in enumerate(plan.schedule.order)}
    counted = tuple(
        CodeOperator(*plan.graph.ops[numbers[0]].counted_as, numbers) for numbers in made.numbers
    )
    resets = writer.resets()
    inputs, outputs = accessors(plan, writer)
    pushed = next((end for end in inputs if end.rows is not None), None)
    if pushed is not None and fetched:
        raise InputError("--weights fetched fetches for whole runs: leave out --stream-input")
    if pushed is not None and preprocess is not None:
        raise InputError("--preprocess writes the whole input: leave out --stream-input")
    steps = steps_of(costs, made.calls, plan.graph) if pushed is None else None
    statuses = (
        *(OF_STEPS if steps else ()),
        *(OF_ROWS if pushed else ()),
        *(OF_WEIGHTS if external else ()),
    )
    absent = {*OF_STEPS, *OF_ROWS, *OF_WEIGHTS} - set(statuses)
    if external:
        writer.functions.update(_CHECKS_FETCHED if fetched else _CHECKS)
    closure = source_closure(writer.functions, trees)
    weights = None
    if external:
        layout = layout_of(plan, made, writer.constants, resets, (*inputs, *outputs), closure.files)
        weights = ExternalWeights(pack(writer.constants, layout), layout.parts, fetched=fetched)
    values: Mapping[str, object] = {
        "name": prefix,
        "NAME": prefix.upper(),
        "plan": plan,
        "graph": plan.graph,
        "places": writer.places,
        "code": made,
        "operators": counted,
        "operands": lambda function: operands(function, writer),
        "inputs": inputs,
        "outputs": outputs,
        "boxes": boxes_of(plan.graph, outputs),
        "constants": writer.constants.arrays,
        "weight_bytes": writer.constants.size_bytes,
        "copied_to": sorted(writer.constants.bank_bytes),
        "arena_bytes": max(plan.arena.size_bytes, 1),
        "alignment_bytes": max(plan.arena.alignment_bytes, _INT_BYTES),
        "memory_map": memory_map(plan, [step_of[number] for number in made.calls]),
        "kernel_headers": closure.headers,
        "resets": resets,
        "pushed": pushed,
        "progress": plan.graph.pushed
        and writer.places.address(plan.arena.offsets[plan.graph.pushed.progress]),
        "core": core,
        "statuses": [status for status in Status if status not in absent],
        "blob": weights,
        "layout_digest": layout.digest.hex() if external else "",
        "weightless": f"{prefix}_has_weights == 0u" if fetched else f"{prefix}_weights == NULL",
        "numbers": writer.constants.numbers,
        "fetches": [fetch_of[number] for number in made.calls] if fetched else [],
        "numbers_offset": writer.constants.numbers_offset,
        "version": __version__,
        "steps": steps,
        "depends_on_data": any(op.attributes.nested for op in plan.graph.ops),
        "computes_in_float": plan.graph.computes_in_float,
        "pointers": writer.places.pointers,
        "stack": None,
        "uses_string": bool(resets or fetched)
        or any(
            printed.function in _STRING_FUNCTIONS
            for calls in operators
            for call in calls
            for printed in call.body
        ),
    }
    files = {
        f"{prefix}{suffix}": environment().get_template(f"{template}.j2").render(values)
        for suffix, template in (
            (".h", "model.h"),
            (".c", "model.c"),
            ("_weights.h", "model_weights.h"),
            (INFO_SUFFIX, "library/info.c"),
            (".hpp", "library/model.hpp"),
        )
        if suffix != "_weights.h" or (writer.constants.arrays and not external)
    }
    for header in PUBLIC_HEADERS:
        files[header] = (runtime_c.INCLUDE / header).read_text(encoding="utf-8")
    used = set(closure.files)
    if preprocess is not None:
        before = source_closure(functions(preprocess), trees)
        files |= preprocess_files(plan, preprocess, inputs, before.headers, values)
        used.update(before.files)
    return Sources(
        name=prefix,
        files=MappingProxyType(files),
        cmsis_nn=_below(sorted(used), cmsis_nn_folder),
        runtime=_below(sorted(used), RUNTIME_C),
        calls=made.calls,
        operators=counted,
        inputs=tuple(end.identifier for end in inputs),
        outputs=tuple(end.identifier for end in outputs),
        weight_bytes=writer.constants.size_bytes,
        stateful=bool(plan.graph.states),
        pushed="" if pushed is None else pushed.identifier,
        parts=plan.arena.parts,
        in_steps=steps is not None,
        weights=weights,
    )


def _about(plan: Plan, prefix: str, *, external: bool, fetched: bool) -> About:
    """The model's file, with a command line that asks for this C and not only for its plan."""
    about, words = plan.about, []
    if not about.asked:
        return about
    if prefix != model_identifier(plan.graph.name):
        words += ["--name", prefix]
    if external:
        words += ["--weights", "fetched" if fetched else "external"]
    return replace(about, asked=(*about.asked, *words))


def constant_bytes(plan: Plan) -> int:
    """Bytes of the constants that the generated C holds. Arrays that are equal count once.

    Raises UnsupportedError if a call would touch bytes beyond its operands.
    """
    return _constants(plan).size_bytes


def fetched_bytes(plan: Plan) -> Mapping[str, int]:
    """Bytes of the constants that each operator would fetch, by its name; none of those without.

    Raises UnsupportedError if a call would touch bytes beyond its operands.
    """
    calls = Writer(plan, "model", external=True, fetched=True).calls()
    each = {call.op.name: call.fetch.size_bytes for calls_of in calls for call in calls_of}
    return {name: size for name, size in each.items() if size}


def copied_bytes(plan: Plan) -> Mapping[str, int]:
    """Bytes of the constants that the start-up copies, by bank of RAM.

    Raises UnsupportedError if a call would touch bytes beyond its operands.
    """
    return _constants(plan).bank_bytes


def _constants(plan: Plan) -> ConstantTable:
    writer = Writer(plan, "model")
    writer.gather()
    writer.resets()
    accessors(plan, writer)
    return writer.constants


def _below(files: Iterable[Path], folder: Path) -> tuple[str, ...]:
    return tuple(p.relative_to(folder).as_posix() for p in files if p.is_relative_to(folder))
