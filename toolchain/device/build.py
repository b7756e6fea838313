"""Compile generated C, kernels and firmware to an ELF for a board, and measure its size."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.boards import GUARD_BYTES, Board
from toolchain.device import compiler
from toolchain.device.blob import write_blob
from toolchain.device.compiler import Unit
from toolchain.device.firmware import (
    Firmware,
    FirmwareModel,
    FirmwarePart,
    Linked,
    Sizes,
    firmware_model,
)
from toolchain.device.stack import stack_need, tells_calls
from toolchain.errors import DoesNotFitError, InputError, MissingToolError
from toolchain.files.templates import rendered
from toolchain.ir import Sources, StackNeed, Status
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.memory.bank_layout import BankNames, Layout
from toolchain.memory.firmware_size import (
    STACK_BYTES,
    code_estimate_bytes,
    firmware_layout,
    pushed_bytes,
    shared_arena,
)
from toolchain.memory.plan import Plan
from toolchain.packages import lazy
from toolchain.progress import Report, silent
from toolchain.resources import RUNTIME_C

if TYPE_CHECKING:
    from elftools.elf import elffile
else:
    elffile = lazy("elftools.elf.elffile")

_BIN_LIMIT_BYTES = 64 * 1024 * 1024
_COMMON = (
    *("-std=gnu99", "-ffunction-sections", "-fdata-sections", "-fno-common"),
    *("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", compiler.CALLS_FLAG),
)
_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wundef")
_FIRMWARE_SOURCES = (
    *("startup.c", "core.c", "service.c", "frame.c", "receive.c"),
    *("fault.c", "memory_use.c", "measure.c", "state.c"),
)
_HOOKS = "thimble_hooks.h"
CACHES = "cortex_m/caches.c"
"""A source of the firmware for chips whose core has caches."""
_WAITS = "stm32/waits.c"
"""A source of the firmware for chips whose start-up waits for flags."""
_WORD_BYTES = 4
_MODEL_SUFFIX, _KERNEL_SUFFIX = ".model.o", ".kernel.o"
_CHECKSUM = "-Wl,--defsym=thimble_beside_crc="
_COPIED, _CODE_COPY = ".copied_", ".code_copy"


@dataclass(frozen=True)
class BuildOptions:
    """`profile`: count every operator (4 bytes of RAM each, about 10 instructions per call).

    `kernels`: the firmware times the kernels of its model one by one; needs `profile`.
    `external`: it makes the memory beside the chip readable, for something in it. `beside`: it
    checks at its start what lies there.
    """

    profile: bool = True
    kernels: bool = False
    external: bool = False
    beside: bool = False
    stack_bytes: int = STACK_BYTES
    kernel_optimisation: str = "-O2"
    model_optimisation: str = "-Os"


@dataclass(frozen=True)
class ModelFiles:
    """C files to compile (the generated ones, Thimble's kernels, CMSIS-NN's) and their headers."""

    generated: tuple[Path, ...]
    kernels: tuple[Path, ...] = ()
    cmsis_nn: tuple[Path, ...] = ()
    cmsis_nn_include: Path | None = None


def _render(template: str, target: Path, **context: object) -> Path:
    target.write_text(rendered(f"firmware/{template}", **context), encoding="utf-8")
    return target


def firmware_defines(board: Board, options: BuildOptions) -> list[str]:
    """`-D` flags that the firmware's C is compiled with."""
    assert board.counter is not None and board.uart is not None
    values = {
        **board.defines,
        "THIMBLE_COUNTER_REGISTER": f"0x{board.counter.register:X}u",
        "THIMBLE_UART_BAUD": f"{board.uart.baud}u",
        "THIMBLE_CLOCK_HZ": f"{board.clock_hz}u",
        "THIMBLE_GUARD_LOG2": f"{GUARD_BYTES.bit_length() - 1}u",
    }
    if board.chip.identity is not None and board.emulator is None:
        values["THIMBLE_ID_REGISTER"] = f"0x{board.chip.identity.id_register:X}u"
    switches = {
        "THIMBLE_CORTEX_M7": board.core.name == "cortex-m7",
        "THIMBLE_CACHES": CACHES in board.firmware_sources,
        "THIMBLE_COUNTER_DOWN": board.counter.counts_down,
        "THIMBLE_COUNTER_WIDE": board.counter.wide,
        "THIMBLE_COUNTER_CYCLES": board.counter.unit == "cycles",
        "THIMBLE_EMULATED": board.emulator is not None,
        "THIMBLE_PROFILE": options.profile,
        "THIMBLE_KERNELS": options.kernels,
        "THIMBLE_EXTERNAL": options.external,
        "THIMBLE_BESIDE": options.beside,
        "THIMBLE_WAITS_END": _WAITS in board.firmware_sources,
    }
    flags = [f"-D{name}={value}" for name, value in sorted(values.items())]
    return flags + [f"-D{name}" for name, wanted in switches.items() if wanted]


@dataclass(frozen=True)
class _Units:
    """`kernels` and `model` come first among `all`."""

    kernels: tuple[Unit, ...]
    model: tuple[Unit, ...]
    firmware: tuple[Unit, ...]
    glue: Unit

    @property
    def all(self) -> tuple[Unit, ...]:
        return (*self.kernels, *self.model, *self.firmware, self.glue)


def _copied_section(bank: str) -> str:
    """The section of the constants that are copied to a bank."""
    return f"{_COPIED}{bank.lower()}"


def _units(
    board: Board, files: ModelFiles, glue: Path, options: BuildOptions, copied_to: Sequence[str]
) -> _Units:
    base = (*board.compiler_flags, *_COMMON)
    folder = RUNTIME_C / "firmware"
    headers = folder / "include"
    defines = firmware_defines(board, options)
    hooks = ("-include", _HOOKS, *defines) if options.profile else ()
    copied = (
        f'-DTHIMBLE_COPIED_{bank}=__attribute__((section("{_copied_section(bank)}")))'
        for bank in copied_to
    )
    firmware_flags = (*base, "-Os", *_WARNINGS, *defines)
    assert board.counter is not None
    sources = [*_FIRMWARE_SOURCES, *board.firmware_sources, board.counter.source]
    if options.external:
        assert board.external is not None
        sources.extend(board.external.sources)
    if options.beside:
        sources.append("beside.c")
    if board.emulator is not None:
        sources.append("emulator/exit.c")
    return _Units(
        kernels=kernel_units(board, files, options),
        model=_model_units(board, files, (options.model_optimisation, *_WARNINGS, *hooks, *copied)),
        firmware=tuple(Unit(folder / name, firmware_flags, (headers,)) for name in sources),
        glue=Unit(glue, firmware_flags, (glue.parent, headers)),
    )


def _system(files: ModelFiles) -> tuple[Path, ...]:
    return (files.cmsis_nn_include,) if files.cmsis_nn_include else ()


def kernel_units(
    board: Board, files: ModelFiles, options: BuildOptions | None = None
) -> tuple[Unit, ...]:
    """The compilations of the kernels among `files`, as for firmware of a board."""
    options = options or BuildOptions()
    flags = (*board.compiler_flags, *_COMMON, options.kernel_optimisation)
    system, warned = _system(files), (*flags, *_WARNINGS)
    theirs = (Unit(path, (*flags, "-w"), (), _KERNEL_SUFFIX, system) for path in files.cmsis_nn)
    ours = (
        Unit(path, warned, runtime_c.KERNEL_INCLUDES, _KERNEL_SUFFIX, system)
        for path in files.kernels
    )
    return (*theirs, *ours)


def _model_units(board: Board, files: ModelFiles, flags: Sequence[str]) -> tuple[Unit, ...]:
    headers = RUNTIME_C / "firmware" / "include"
    return tuple(
        Unit(
            path,
            (*board.compiler_flags, *_COMMON, *flags),
            (path.parent, runtime_c.INCLUDE, headers),
            _MODEL_SUFFIX,
            _system(files),
        )
        for path in files.generated
    )


def build_files(
    board: Board,
    models: Sequence[FirmwareModel],
    files: ModelFiles,
    folder: Path,
    banks: Layout,
    options: BuildOptions | None = None,
    *,
    report: Report = silent,
) -> Firmware:
    """Build firmware from C files that define `<name>_run` of every model, into `folder`.

    `banks` says where each part goes; the linker checks that it fits. Raises DoesNotFitError,
    MissingToolError, or BuildError with the compiler's message.
    """
    if board.is_host:
        raise InputError("the host runs the generated C as a process; it has no firmware")
    board.check_firmware()
    folder.mkdir(parents=True, exist_ok=True)
    job = _job(board, models, files, folder, banks, options or BuildOptions())
    objects = compiler.compile_units(job.units.all, report)
    elf = folder / "firmware.elf"
    first = (f"{_CHECKSUM}0",) if job.beside else ()
    compiler.link(objects, (*board.compiler_flags, *first), job.script, elf)
    if checked := _beside(job.banks):
        checksum = f"{_CHECKSUM}{_checksum(elf, checked):#x}"
        compiler.link(objects, (*board.compiler_flags, checksum), job.script, elf)
    compiler.convert(elf, "ihex", elf.with_suffix(".hex"))
    if _span_bytes(elf) <= _BIN_LIMIT_BYTES:
        compiler.convert(elf, "binary", elf.with_suffix(".bin"))
    built = Firmware(
        folder,
        board,
        tuple(models),
        measure(elf, models),
        job.build_id.hex(),
        linked=_linked(files, folder, banks),
        objects=objects[: len(job.units.kernels) + len(job.units.model)],
    )
    built.save()
    return built


def identity(
    board: Board,
    models: Sequence[FirmwareModel],
    files: ModelFiles,
    folder: Path,
    banks: Layout,
    options: BuildOptions,
) -> str:
    """The `build_id` that `build_files` would give; writes linker script and glue to `folder`."""
    return _job(board, models, files, folder, banks, options).build_id.hex()


def _linked(files: ModelFiles, folder: Path, banks: Layout) -> Linked | None:
    """How a firmware was linked; None where files lie where another build would not find them."""
    tree = files.cmsis_nn_include.parent if files.cmsis_nn_include else Path()
    sides = ((files.generated, folder), (files.kernels, RUNTIME_C), (files.cmsis_nn, tree))
    if not all(path.is_relative_to(base) for paths, base in sides for path in paths):
        return None
    generated, kernels, arm = (
        tuple(path.relative_to(base).as_posix() for path in paths) for paths, base in sides
    )
    return Linked(generated, kernels, arm, BankNames.of(banks))


@dataclass(frozen=True)
class _Job:
    """Compilations and a linker script. `beside`: the firmware checks memory beside the chip."""

    units: _Units
    script: Path
    banks: Layout
    beside: bool
    build_id: bytes


def _job(
    board: Board,
    models: Sequence[FirmwareModel],
    files: ModelFiles,
    folder: Path,
    banks: Layout,
    chosen_options: BuildOptions,
) -> _Job:
    """The units and the script of a build; writes linker script and glue to `folder`."""
    chosen, arrays = banks.merged(), arena_arrays(models)
    addresses = [m.weights.address for m in models if m.weights and m.weights.address is not None]
    if _reaches_beside(board, chosen, addresses):
        chosen_options = replace(chosen_options, external=True)
    beside = chosen.weights.beside or chosen_options.external
    chosen_options = replace(chosen_options, beside=beside)
    script = _render(
        "linker.ld.j2",
        folder / "firmware.ld",
        board=board,
        banks=chosen.banks,
        layout=chosen,
        arenas=list(zip(arrays, chosen.arenas, strict=True)),
        copies=[(_copied_section(name), bank) for name, bank in chosen.copies],
        stack_bytes=chosen_options.stack_bytes,
        model_objects=f"*{_MODEL_SUFFIX}",
        kernel_objects=f"*{_KERNEL_SUFFIX}",
        code_copy=_CODE_COPY,
        beside=beside,
    )
    context = {
        "models": models,
        "arenas": arrays,
        "board": board,
        "profile": chosen_options.profile,
        "weights_missing": Status.ERROR_WEIGHTS_MISSING.value,
    }
    glue = _render(
        "firmware_model.c.j2", folder / "firmware_model.c", build_id=bytes(16), **context
    )
    units = _units(board, files, glue, chosen_options, [name for name, _ in chosen.copies])
    build_id = _identity(units.all, script)
    _render("firmware_model.c.j2", glue, build_id=build_id, **context)
    return _Job(units, script, chosen, beside, build_id)


def _beside(banks: Layout) -> list[str]:
    """The sections that the start-up checks, in the order of the linker script."""
    if not banks.weights.beside:
        return []
    return [".weights", *(_copied_section(name) for name, _ in banks.copies)]


def _checksum(elf: Path, sections: Sequence[str]) -> int:
    """The CRC-32 of the sections' bytes, one after another. They do not depend on it."""
    checksum = 0
    with elf.open("rb") as file:
        linked = elffile.ELFFile(file)
        for name in sections:
            section = linked.get_section_by_name(name)
            checksum = zlib.crc32(section.data() if section is not None else b"", checksum)
    return checksum


def _reaches_beside(board: Board, banks: Layout, addresses: Sequence[int]) -> bool:
    """Whether anything lies in the memory beside the chip: a bank of the firmware's, or weights
    that another tool puts at one of these addresses."""
    external = board.external
    held = (m for m in board.memories if external is not None and m.name == external.bank)
    return any(
        m.name in {bank.name for bank in banks.banks}
        or any(m.origin <= address < m.end for address in addresses)
        for m in held
    )


def build(
    models: Sequence[tuple[Plan, Sources]],
    board: Board,
    folder: Path,
    options: BuildOptions | None = None,
    *,
    cmsis_nn_folder: Path | None = None,
    report: Report = silent,
) -> Firmware:
    """Write the generated files to `folder` and build the firmware there.

    Several models share one arena: they run one at a time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plans, made = [plan for plan, _ in models], [sources for _, sources in models]
    files = _written(made, folder, cmsis_nn_folder)
    blobs = [(sources, write_blob(sources, folder)) for sources in made]
    held = [b for s, b in blobs if b and s.weights and s.weights.address is None]
    files = replace(files, generated=(*files.generated, *held))
    chosen = options or BuildOptions()
    carried = _carried(models)
    banks = beside_weights(_banks(board, plans, chosen), made)
    try:
        return build_files(board, carried, files, folder, banks, chosen, report=report)
    except compiler.BankOverflowError as overflow:
        other = roomier_banks(board, plans, chosen, banks, overflow)
        if other is None:
            raise
        other = beside_weights(other, made)
        return build_files(board, carried, files, folder, other, chosen, report=report)


def _written(made: Sequence[Sources], folder: Path, cmsis_nn_folder: Path | None) -> ModelFiles:
    """The generated files, written to `folder`, and the kernels that they need."""
    for name, text in (item for sources in made for item in sources.files.items()):
        (folder / name).write_text(text, encoding="utf-8")
    kernels = cmsis_nn.tree(cmsis_nn_folder or cmsis_nn.find()).include.parent
    return ModelFiles(
        generated=tuple(folder / name for s in made for name in s.run_files),
        kernels=tuple(RUNTIME_C / path for path in sorted({p for s in made for p in s.runtime})),
        cmsis_nn=tuple(kernels / path for path in sorted({p for s in made for p in s.cmsis_nn})),
        cmsis_nn_include=kernels / "Include",
    )


def firmware_stacks(firmware: Firmware) -> tuple[StackNeed, ...]:
    """The stack of each model of a firmware that was built just now; none where the compiler does
    not tell it."""
    if not tells_calls(firmware.objects):
        return ()
    options = BuildOptions()
    said = _compiler_line(firmware.board, options.model_optimisation, options.kernel_optimisation)
    return tuple(
        stack_need(model.name, firmware.objects, firmware.elf, said) for model in firmware.models
    )


_OWN_STACK_BYTES = 512
"""At most, of the firmware around a model: its frames from the start on, and an interrupt's."""
_STACK_UNIT = 64


def stack_to_reserve(stacks: Sequence[StackNeed]) -> int:
    """Bytes of stack that firmware with these models needs; 0 where no model has a bound."""
    most = max((stack.size_bytes or 0 for stack in stacks), default=0)
    return -(-(most + _OWN_STACK_BYTES) // _STACK_UNIT) * _STACK_UNIT if most else 0


def library_stacks(
    made: Sequence[Sources], board: Board, folder: Path, cmsis_nn_folder: Path
) -> tuple[StackNeed, ...]:
    """The stack of each model of a library, compiled in the empty `folder`; none where the compiler
    for the board's core is not installed or does not tell it, and for the host."""
    try:
        compiler.find_tool("gcc")
        compiler.find_tool("objdump")
    except MissingToolError:
        return ()
    if board.is_host:
        return ()
    options = BuildOptions(model_optimisation="-O2")
    files = _written(made, folder, cmsis_nn_folder)
    kernels = kernel_units(board, files, options)
    model = _model_units(board, files, (options.model_optimisation, *_WARNINGS))
    objects = compiler.compile_units((*kernels, *model))
    if not tells_calls(objects):
        return ()
    elf = folder / "library.elf"
    compiler.link_functions(objects, board.compiler_flags, elf)
    said = _compiler_line(board, options.model_optimisation, options.kernel_optimisation)
    return tuple(stack_need(sources.name, objects, elf, said) for sources in made)


def _compiler_line(board: Board, model: str, kernels: str) -> str:
    """The compiler and its flags, for people."""
    core = " ".join(f for f in board.compiler_flags if f.startswith("-m"))
    apart = f"{kernels} (the model's own file: {model})"
    return f"{compiler.compiler_version()}, {core} {kernels if model == kernels else apart}"


def _banks(board: Board, plans: Sequence[Plan], options: BuildOptions) -> Layout:
    held = sum(map(pushed_bytes, plans))
    return firmware_layout(board, plans, options.stack_bytes, more_data_bytes=held)


def linkable(plan: Plan, sources: Sources, board: Board) -> tuple[FirmwareModel, Linked]:
    """The model of a library, and of which files of its folder and of this package firmware for a
    board is linked."""
    linked = Linked(
        tuple(sources.run_files),
        tuple(sorted(sources.runtime)),
        tuple(sorted(sources.cmsis_nn)),
        BankNames.of(_banks(board, [plan], BuildOptions())),
    )
    return _carried([(plan, sources)])[0], linked


def _carried(models: Sequence[tuple[Plan, Sources]]) -> list[FirmwareModel]:
    """Models that share one arena, as a firmware sees them."""
    shared = shared_arena([plan for plan, _ in models])
    return [
        firmware_model(
            plan,
            sources,
            tuple(
                FirmwarePart(
                    part.size_bytes, part.bank, part.member if plan.arena.parts else "", at
                )
                for part, at in zip(parts, offsets, strict=True)
            ),
        )
        for (plan, sources), parts, offsets in zip(
            models, shared.parts, shared.offsets, strict=True
        )
    ]


def beside_weights(banks: Layout, made: Sequence[Sources]) -> Layout:
    """The layout without the bytes where another tool puts weights. Raises InputError if they do
    not leave the beginning of a bank to the firmware.
    """
    for weights in (sources.weights for sources in made):
        if weights is not None and weights.address is not None:
            banks = banks.below(weights.address, len(weights.data))
    return banks


def roomier_banks(
    board: Board,
    plans: Sequence[Plan],
    options: BuildOptions,
    banks: Layout,
    overflow: compiler.BankOverflowError,
) -> Layout | None:
    """Other banks, if code and weights are larger than estimated; None if there are none. Code that
    is too large for its copy stays in flash.
    """
    if banks.code_copy is not None and overflow.bank.startswith(banks.code_copy.name):
        return replace(banks, code_copy=None)
    if overflow.bank != banks.code.name:
        return None
    expected = code_estimate_bytes(*plans)
    if banks.weights == banks.code:
        expected += sum(plan.weight_bytes for plan in plans)
    real = banks.code.size_bytes + overflow.excess_bytes
    try:
        other = firmware_layout(
            board,
            plans,
            options.stack_bytes,
            max(real - expected, 0),
            more_data_bytes=sum(map(pushed_bytes, plans)),
        )
    except DoesNotFitError:
        return None
    return other if (other.code, other.weights) != (banks.code, banks.weights) else None


@dataclass(frozen=True)
class ArenaArray:
    """The firmware's arena in one bank: a C array in a section of its own."""

    symbol: str
    size_bytes: int

    @property
    def section(self) -> str:
        return f".{self.symbol}"


def arena_arrays(models: Sequence[FirmwareModel]) -> tuple[ArenaArray, ...]:
    """One array for each bank, as large as its models need; in the order of `shared_arena`."""
    sizes: dict[str, int] = {}
    spread_first = sorted(models, key=lambda model: not model.over_banks)
    for part in (part for model in spread_first for part in model.parts):
        end = max(part.offset_bytes + part.size_bytes, 1)
        sizes[part.symbol] = max(sizes.get(part.symbol, 0), end)
    return tuple(ArenaArray(symbol, size) for symbol, size in sizes.items())


def _identity(units: Sequence[Unit], script: Path) -> bytes:
    """A digest of 16 bytes of all that is built: names, flags and contents, but no folders.

    Files generated beside the script follow from the sources and the flags.
    """
    digest = hashlib.sha256(script.read_bytes())
    folders = {i for unit in units for i in (*unit.includes, *unit.system_includes)}
    compiler.headers_digest.cache_clear()
    for headers in sorted(map(compiler.headers_digest, folders - {script.parent})):
        digest.update(headers.encode())
    for unit in units:
        digest.update("\0".join((unit.source.name, *unit.flags)).encode())
        digest.update(unit.source.read_bytes())
    return digest.digest()[:16]


def _span_bytes(elf: Path) -> int:
    """Bytes from the first to the last one that the ELF loads."""
    with elf.open("rb") as file:
        loads = [s for s in elffile.ELFFile(file).iter_segments("PT_LOAD") if s["p_filesz"]]
        ends = [segment["p_paddr"] + segment["p_filesz"] for segment in loads]
        return int(max(ends) - min(segment["p_paddr"] for segment in loads))


def measure(elf: Path, models: Sequence[FirmwareModel] = ()) -> Sizes:
    """Sizes in bytes of the linked sections."""
    held = [model.pushed.size_bytes for model in models if model.pushed is not None]
    pushed_bytes = sum(-(-size // _WORD_BYTES) * _WORD_BYTES for size in held)
    with elf.open("rb") as file:
        sections = {s.name: int(s["sh_size"]) for s in elffile.ELFFile(file).iter_sections()}

    def total(*names: str) -> int:
        return sum(sections.get(name, 0) for name in names)

    copied_bytes = total(*(name for name in sections if name.startswith(_COPIED)))
    return Sizes(
        code_bytes=total(".vectors", ".text", ".rodata", _CODE_COPY),
        weight_bytes=total(".weights") + copied_bytes,
        data_bytes=total(".data"),
        bss_bytes=total(".bss", ".noinit") - pushed_bytes,
        arena_bytes=total(*(name for name in sections if name.startswith(".arena"))),
        stack_bytes=total(".stack"),
        copied_bytes=copied_bytes + total(_CODE_COPY),
        code_copy_bytes=total(_CODE_COPY),
        pushed_bytes=pushed_bytes,
    )
