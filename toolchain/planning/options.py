"""How to plan: the options of `plan`, `compile` and similar commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from toolchain import arena, partition, schedule
from toolchain.boards import Board
from toolchain.decode.option import Decode, decoding
from toolchain.errors import InputError, did_you_mean
from toolchain.files.amounts import amount
from toolchain.files.labels import read_labels
from toolchain.frontends import Reading
from toolchain.memory.firmware_size import ram_bytes
from toolchain.memory.plan import Plan
from toolchain.ops.preference import Preference, preference
from toolchain.partition import splitters
from toolchain.planning.option import Option, option, option_words, per_cent, read_options
from toolchain.preprocess.option import Preprocess
from toolchain.preprocess.option import preprocess as read_preprocess

_SEARCH, _DATA, _KERNELS = "Search", "Inputs and outputs", "Kernels"
"""Headings of the options that not everybody needs."""
_SECONDS, _SECONDS_AN_OPERATOR, _FAST_SECONDS = 1.0, 0.03, 0.2
"""Work limit of the search for splits, with what each operator adds; in fast plans of each
search.
"""
_SHARE, _SPEED_SHARE = 12, 15
"""Sixteenths of the flash. The size of code is an estimate, and firmware grows."""
_FULL, _FAST = _EFFORTS = "full", "fast"
_SPLITTING = {"ram": "--ram", "max_slowdown": "--max-slowdown"}
"""The options that ask for splits, by their keys."""


class Optimise(StrEnum):
    """The values of `--optimise`.

    BALANCED  the least RAM within 1% of the quickest plan, with kernels that take up to three
              quarters of the flash.
    SPEED     the quickest plan that flash and RAM hold, split where blocks are quicker.
    SIZE      the kernels with the least flash and scratch, of at most a quarter more cycles of the
              core.
    """

    BALANCED = "balanced"
    SPEED = "speed"
    SIZE = "size"


def goal(name: str) -> Optimise:
    """The goal of that name. Raises InputError for an unknown one."""
    try:
        return Optimise(name)
    except ValueError:
        known = f"{', '.join(Optimise)}{did_you_mean(name, Optimise)}"
        raise InputError(f"--optimise {name!r} is unknown; there are: {known}") from None


def _known(find: Callable[[str], object]) -> Callable[[str, str], str]:
    """A reader of names: it refuses names for which `find` raises InputError."""

    def read(name: str, _: str) -> str:
        find(name)
        return name

    return read


def _effort(text: str, name: str) -> bool:
    if text not in _EFFORTS:
        raise InputError(
            f"{name} {text!r}: it is one of {', '.join(_EFFORTS)}{did_you_mean(text, _EFFORTS)}"
        )
    return text == _FAST


def _shapes(texts: Sequence[str], name: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """`image=1x3x192x192`, each. A name may hold `=`."""
    shapes = []
    for text in texts:
        called, _, sizes = text.rpartition("=")
        if not called or not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", sizes):
            raise InputError(f"{name} {text!r}: write it as NAME=1x3x192x192")
        shapes.append((called, tuple(map(int, sizes.split("x")))))
    return tuple(shapes)


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. A field tells its option of the command line, whose help says what it does.

    In Python these are:
    labels        the names of the classes.
    ram_bytes, flash_bytes  numbers.
    max_slowdown  a fraction of the latency: 0.05 for 5%.
    nearly_free   False for --no-split.
    fast          True for --plan fast.
    input_shapes  pairs of an input's name and its shape.
    dead_channels  False for --keep-dead-channels.
    copy_constants  False for --no-copies; never with Optimise.SIZE (`planning.copies`).
    kernels, optimise, decode, preprocess  values, or the words of their options.

    These have no option:
    time_limit_seconds  for the scheduler and for the allocator, each.
    rewrite       partition concatenations where that lowers the peak. Convolutions that sum in
                  parts take about three times the instructions.

    Limits in seconds count work that takes about so long on one core: no clock changes a plan.
    """

    labels: tuple[str, ...] = option(
        (),
        Option(
            "--labels",
            "Names of the classes, one per line. They belong to the outputs with as many classes. "
            "Default: the names in the model file (TFLite metadata, ONNX `names`), if any.",
            unit="FILE",
            takes=Path,
            read=lambda file, _: read_labels(file),
            write=None,
            panel=_DATA,
        ),
    )
    scheduler: str = option(
        schedule.DEFAULT,
        Option(
            "--scheduler",
            f"Method that orders the operators: {', '.join(schedule.names())}.",
            read=_known(schedule.scheduler),
            values=schedule.names(),
            panel=_SEARCH,
        ),
    )
    allocator: str = option(
        arena.DEFAULT,
        Option(
            "--allocator",
            f"Method that places the tensors: {', '.join(arena.names())}.",
            read=_known(arena.allocator),
            values=arena.names(),
            panel=_SEARCH,
        ),
    )
    ram_bytes: int | None = option(
        None,
        Option(
            "--ram",
            "The quickest plan whose RAM (arena, data, stack, copies) is at most this, e.g. 96K.",
            unit="BYTES",
            read=amount,
        ),
    )
    flash_bytes: int | None = option(
        None,
        Option(
            "--flash",
            "The most flash for code and constants, e.g. 256K; quicker kernels use the spare part "
            "of it. Default: three quarters of the board's.",
            unit="BYTES",
            read=amount,
        ),
    )
    optimise: Optimise = option(
        Optimise.BALANCED,
        Option(
            "--optimise",
            "How flash and RAM are used. balanced: the least RAM within 1% of the quickest plan; "
            "kernels that save cycles with more flash; copies of constants and code in half of the "
            "spare RAM. speed: the quickest plan; up to all RAM and 15/16 of the flash, copies "
            "wherever they are read sooner. size: the kernels with the least code and constants "
            "that take at most 25% more cycles of the core, and no copies.",
            unit="|".join(Optimise),
            values=tuple(Optimise),
        ),
    )
    max_slowdown: float | None = option(
        None,
        Option(
            "--max-slowdown",
            "The smallest arena for at most this many per cent more cycles than the quickest plan. "
            "Cycles are predicted, unless measured or modelled from a trace. Write 5% or 5; a "
            "number below 1 needs its sign: 0.5%.",
            unit="PERCENT",
            read=per_cent,
            write=lambda share: f"{100 * share:.10g}%",
        ),
    )
    splitter: str = option(
        splitters.DEFAULT,
        Option(
            "--splitter",
            f"Method that searches for splits: {', '.join(splitters.names())}.",
            read=_known(splitters.splitter),
            panel=_SEARCH,
        ),
    )
    nearly_free: bool = option(
        True,
        Option(
            "--no-split",
            "Keep every operator whole. Default: the smallest arena within 1% of the quickest "
            "plan's predicted cycles. Operators are split into blocks if that saves at least 5% of "
            "the arena and 1 KiB, or costs nothing. --max-slowdown sets another limit. Operators "
            "also stay whole with --kernels cmsis-nn, or with a --scheduler or --allocator other "
            "than the default.",
            takes=bool,
            read=lambda whole, _: not whole,
            panel=_SEARCH,
        ),
    )
    stream_input: bool = option(
        False,
        Option(
            "--stream-input",
            "The input arrives by rows (of an image, of a spectrogram), and RAM holds only the "
            "rows that are still needed. The C has <name>_push_rows(arena, rows, n) in place of "
            "<name>_run, and computes while the rows arrive.",
            takes=bool,
            panel=_DATA,
        ),
    )
    streamed_input: str = option(
        "",
        Option(
            "--streamed-input",
            "The input that arrives by rows, if several inputs have rows.",
            unit="NAME",
            panel=_DATA,
        ),
    )
    fast: bool = option(
        False,
        Option(
            "--plan",
            "fast: limit each search (for the order, the offsets, the splits) "
            "to a fifth of a second's worth of work. The arena may be larger.",
            unit="|".join(_EFFORTS),
            read=_effort,
            write=lambda fast: _FAST if fast else _FULL,
            panel=_SEARCH,
        ),
    )
    choice: int | None = option(
        None,
        Option(
            "--choice",
            "Make exactly the plan of this row of the list of --pareto. The search is repeated, so "
            "give all other options that the list was made with.",
            unit="NUMBER",
            takes=int,
            least=1,
            panel=_SEARCH,
        ),
    )
    split_seconds: float | None = option(
        None,
        Option(
            "--split-seconds",
            "Work limit of the search for splits, in seconds that the work takes on one core of a "
            "desktop computer. Default: 1, and 0.03 for each operator, at most 30. No clock is "
            "read, so the plan is the same on every machine. With --ram or --max-slowdown, Ctrl-C "
            "ends the search and keeps the best result.",
            takes=float,
            least=0.0,
            panel=_SEARCH,
        ),
    )
    one_bank: bool = option(
        False,
        Option(
            "--one-bank",
            "Keep the arena in one piece. Default: spread it over several RAM banks if no bank "
            "holds all of it, or if a faster bank can hold a part.",
            takes=bool,
            panel=_SEARCH,
        ),
    )
    allow_float: bool = option(
        False,
        Option(
            "--float",
            "Accept a model that computes in float32; a warning says what int8 would save. "
            "Single float operators in a quantised model do not need this option.",
            takes=bool,
            panel=_KERNELS,
        ),
    )
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (),
        Option(
            "--input-shape",
            "The shape of an input whose dimensions the file leaves open; give it again for "
            "further inputs.",
            unit="NAME=1x3x192x192",
            takes=list,
            read=_shapes,
            write=lambda shape: f"{shape[0]}={'x'.join(map(str, shape[1]))}",
            panel=_DATA,
        ),
    )
    decode: Decode | None = option(
        None,
        Option(
            "--decode",
            "Compute boxes from the raw heads of a detector. Four more outputs follow the model's "
            "own: boxes, classes, scores, and their number. Examples: yolo (v8, v11); "
            "yolo:anchors.toml (v3, v5, v7); ssd:anchors=anchors.npy,scores=sigmoid.",
            unit="ssd|yolo[:FILE.toml][,NAME=VALUE,...]",
            read=lambda text, _, **thresholds: decoding(text, **thresholds),
            parts=(
                Option(
                    "--score-threshold",
                    "With --decode: boxes with a lower score are dropped. Default: 0.25; ssd 0.3.",
                    unit="SCORE",
                    takes=float,
                    panel=_DATA,
                ),
                Option(
                    "--iou-threshold",
                    "With --decode: a box that overlaps a better one by more than this (IoU) is "
                    "dropped. Default: 0.45; ssd 0.6.",
                    unit="SHARE",
                    takes=float,
                    panel=_DATA,
                ),
                Option(
                    "--max-detections",
                    "With --decode: the most boxes to report. Default: 20.",
                    unit="BOXES",
                    takes=int,
                    panel=_DATA,
                ),
            ),
            panel=_DATA,
        ),
    )
    kernels: Preference = option(
        Preference.AUTO,
        Option(
            "--kernels",
            "Whose kernels to use. auto: the quicker one for each operator. cmsis-nn: CMSIS-NN's "
            "function wherever it takes the operator, else Thimble's. thimble: Thimble's wherever "
            "there is one. The report lists operators that got another kernel, with the reason. It "
            "also lists operators whose bytes may differ from the reference's, because CMSIS-NN "
            "rounds fully connected layers otherwise than LiteRT.",
            unit="|".join(Preference),
            values=tuple(Preference),
            panel=_KERNELS,
        ),
    )
    dead_channels: bool = option(
        True,
        Option(
            "--keep-dead-channels",
            "Keep channels that cannot change an output. Default: a channel whose weights are all "
            "zero is folded into the biases of its readers and removed, which changes no output.",
            takes=bool,
            read=lambda kept, _: not kept,
            panel=_KERNELS,
        ),
    )
    preprocess: Preprocess | None = option(
        None,
        Option(
            "--preprocess",
            "Also write C that makes the model's input. audio: from samples of sound, the features "
            "of TensorFlow Lite Micro's micro front end (*_audio.h); example: "
            "audio:step_ms=20,stride=2. image: from a camera's frame, cropped, resized, converted "
            "and quantised (*_image.h); example: image:width=320,height=240,format=rgb565be.",
            unit="KIND[:NAME=VALUE,...]",
            write=None,
            panel=_DATA,
        ),
    )
    time_limit_seconds: float | None = None
    rewrite: bool = True
    copy_constants: bool = option(
        True,
        Option(
            "--no-copies",
            "Leave all constants and code in flash. Default: where that saves 1% of the time, the "
            "start-up copies them to RAM that is read sooner, which the plan does not need: up to "
            "three quarters of tightly coupled banks, and half of what is left of others. --ram "
            "sets another limit.",
            takes=bool,
            read=lambda refused, _: not refused,
        ),
    )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PlanOptions:
        """Make options from values by their keys (`max_slowdown` of `--max-slowdown`).

        Raises InputError for an unknown name, an invalid number, and options that contradict each
        other.
        """
        whole = ["--no-split"] if given.get("no_split") else []
        splits = [name for key, name in _SPLITTING.items() if given.get(key)]
        if whole and splits:
            raise InputError(
                f"--no-split keeps every operator whole, {splits[0]} splits: leave out one"
            )
        if given.get("choice") is not None and (whole or splits):
            asked = (whole + splits)[0]
            raise InputError(f"--choice says what is split, and so does {asked}: leave out one")
        if whole and given.get("stream_input"):
            raise InputError(
                "--no-split keeps the input whole, --stream-input cuts it: leave out one"
            )
        if given.get("streamed_input") and not given.get("stream_input"):
            raise InputError(
                "--streamed-input names the input of --stream-input, which is not given"
            )
        return cls(**read_options(cls, given))

    def __post_init__(self) -> None:
        """A name such as "cmsis-nn" or the texts of `--preprocess` and `--decode` will do. Raises
        InputError for an unknown one.
        """
        object.__setattr__(self, "kernels", preference(self.kernels))
        object.__setattr__(self, "optimise", goal(self.optimise))
        if isinstance(self.preprocess, str):
            object.__setattr__(self, "preprocess", read_preprocess(self.preprocess))
        if isinstance(self.decode, str):
            object.__setattr__(self, "decode", decoding(self.decode))
        if self.fast and self.time_limit_seconds is None:
            object.__setattr__(self, "time_limit_seconds", _FAST_SECONDS)

    @property
    def words(self) -> list[str]:
        """The words of a command line that ask for this; `choice` alone says what is split."""
        if self.choice is None:
            return option_words(self)
        return option_words(replace(self, ram_bytes=None, max_slowdown=None, nearly_free=True))

    @property
    def reading(self) -> Reading:
        """How the model file is to be read."""
        return Reading(dict(self.input_shapes), self.allow_float)

    @property
    def splits(self) -> bool:
        """Whether splits are requested."""
        return self.ram_bytes is not None or self.max_slowdown is not None

    def flash_of(self, target: Board) -> int:
        """Bytes of flash that the firmware may take with quicker kernels."""
        if self.flash_bytes is not None:
            return self.flash_bytes
        speed = self.optimise is Optimise.SPEED
        return target.chip_flash_bytes * (_SPEED_SHARE if speed else _SHARE) // 16

    @property
    def splits_nearly_free(self) -> bool:
        """Whether splits are taken that nobody asked for: that are nearly free, or quicker. Parts
        of an operator may have a kernel of ours where the whole has one of CMSIS-NN's.
        """
        named = (self.scheduler, self.allocator) != (schedule.DEFAULT, arena.DEFAULT)
        named |= self.kernels is Preference.CMSIS_NN
        return self.nearly_free and not self.splits and not named

    @property
    def unsplit(self) -> PlanOptions:
        """These options, with every operator whole."""
        return replace(self, ram_bytes=None, max_slowdown=None, nearly_free=False, choice=None)

    def search_seconds(self, operators: int) -> float:
        """Work limit of a search for ways to split a graph of so many operators."""
        if self.split_seconds is not None:
            return self.split_seconds
        if self.fast:
            return _FAST_SECONDS
        return min(_SECONDS + _SECONDS_AN_OPERATOR * operators, partition.DEFAULT_SECONDS)

    def met_by(self, plan: Plan) -> bool:
        """Whether a plan needs no more RAM than `ram_bytes`."""
        return self.ram_bytes is not None and ram_bytes(plan) <= self.ram_bytes
