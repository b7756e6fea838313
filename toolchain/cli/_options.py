"""Options that several subcommands share. Options of planning are in `planning.options`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolchain.boards import board as find_board
from toolchain.boards import is_core, sized_core
from toolchain.cli import _completion as completion
from toolchain.cli._console import note
from toolchain.cli._groups import option
from toolchain.device.patience import RUN_SECONDS
from toolchain.errors import InputError
from toolchain.ir import External

if TYPE_CHECKING:
    from toolchain.planning.options import PlanOptions

_WEIGHTS = "code", "external", "fetched"
_CODE, _LINE = "Files", "The line to the board"
"""Headings of help."""
ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="An int8 .tflite file, or a QDQ or QLinear .onnx.",
        autocompletion=completion.models,
    ),
]
BoardOption = Annotated[
    str,
    typer.Option(
        "--board",
        "-b",
        "--chip",
        help="A board (`thimble boards` lists them), the path of your board.toml, or a part number "
        "without a board (STM32U575ZI: to plan, and for C). A core does so for chips of other "
        "makers: cortex-m0, m0plus, m3, m4, m4f, m7, m33, m55, m85. EMULATED:TARGET is an emulated "
        "board with the memories and clock of another board or chip, as mps2-an500:nucleo-h743zi. "
        "BOARD@BANK puts the weights into that bank, as f746g-disco@QSPI.",
        autocompletion=completion.targets,
    ),
]


@dataclass(frozen=True)
class BoardOptions:
    """A board; and what is known of a chip whose core is named without one."""

    board: BoardOption = ""
    clock: str | None = option(
        None,
        "With a core as --chip: the clock of your chip, as 64M. --ram and --flash then also say "
        "how much memory it has. What is left out is assumed, and a line says how.",
        unit="HZ",
    )
    wait_states: int | None = option(
        None,
        "With a core as --chip: cycles that a read of its flash waits. Default: 0.",
        unit="CYCLES",
        least=0,
    )

    def named(self, options: PlanOptions, folder: Path | None = None) -> str:
        """As `named_board`; a core has the values that are given, and a line tells the others."""
        return self.sized(named_board(self.board, folder), options)

    def sized(self, board: str, options: PlanOptions) -> str:
        """The board; a core with the values that are given, and a line on those that are not.

        Raises InputError for a clock or wait states of what has its own.
        """
        clock = {"clock": self.clock, "waits": self.wait_states}
        told = {key: str(value) for key, value in clock.items() if value is not None}
        if not is_core(board):
            for key in told:
                option_name = {"clock": "--clock", "waits": "--wait-states"}[key]
                raise InputError(
                    f"{option_name} is of a core without a board, as --chip cortex-m4f: "
                    + (f"{board} has its own" if board else "name one")
                )
            return board
        memory = {"ram": options.ram_bytes, "flash": options.flash_bytes}
        given = {key: str(value) for key, value in memory.items() if value is not None}
        name = sized_core(board, told, given)
        if assumed := find_board(name).assumed:
            note(f"{name} is assumed to have {', '.join(assumed)}.")
        return name


def named_board(board: str, folder: Path | None = None) -> str:
    """The board that a command needs: the one that is named, else that of the last build in
    `folder`, which a line says. Raises InputError where there is neither.
    """
    from toolchain.deployment.folder import last_board  # --help needs no builds

    if not board and folder is not None and (board := last_board(folder)):
        note(f"For {board}, as the last build in {folder}; --board names another.")
    if not board:
        raise InputError(
            "name a board: none is taken by default",
            remedies=[
                "--board NAME (`thimble boards` lists them) or --chip PART",
                "`thimble plan MODEL` for a few boards side by side",
                "`thimble boards --for MODEL` for all",
            ],
        )
    return board


CmsisNnOption = Annotated[
    Path | None,
    typer.Option(
        "--cmsis-nn",
        metavar="DIR",
        rich_help_panel=_CODE,
        help="A CMSIS-NN checkout. Default: $CMSIS_NN_DIR, else the pinned copy.",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        rich_help_panel=_CODE,
        help="Replace the files of an earlier run in DIR even if they were changed, and keep "
        "added ones. Without it, such a folder is refused.",
    ),
]
PortOption = Annotated[
    str | None,
    typer.Option(
        "--port",
        "-p",
        rich_help_panel=_LINE,
        help="Serial port of the board (/dev/ttyACM0, socket://host:port, rfc2217://host:port). "
        "Without it, emulated boards are started.",
    ),
]


def timeout_option() -> float:
    """--timeout, of commands that run models."""
    return option(
        RUN_SECONDS,
        "Limit of one inference, wherever it runs: on the board, in QEMU, on this "
        "machine, in the reference runtime. A longer one is stopped.",
        unit="SECONDS",
        least=0.01,
        most=1e7,
        panel=_LINE,
    )


@dataclass(frozen=True)
class LineOptions:
    """The line to a board, and how long it may take to answer."""

    port: PortOption = None
    timeout: float = timeout_option()


@dataclass(frozen=True)
class CodeOptions:
    """Options of generated code: where weights and kernels are, and the files that it replaces."""

    weights: str = option(
        _WEIGHTS[0],
        "external: constants lie in a blob, DIR/<name>_weights.bin, which the code "
        "checks before the first run and which can be replaced without new code (`thimble "
        "weights`). fetched: the same, and a function of yours fetches the constants of each "
        "operator to the arena while the one before it runs. Default: they are arrays in the "
        "code.",
        unit="|".join(_WEIGHTS),
        complete=completion.one_of(*_WEIGHTS),
        panel=_CODE,
    )
    weights_address: str | None = option(
        None,
        "With --weights external: where another tool puts the blob, as 0x90000000; DIR "
        "also gets it as Intel HEX. Default: the firmware holds the blob.",
        unit="ADDRESS",
        panel=_CODE,
    )
    cmsis_nn: CmsisNnOption = None
    force: ForceOption = False

    def external(self) -> External | None:
        """The place of the weights; None: in the code. Raises InputError for another text."""
        if self.weights not in _WEIGHTS:
            raise InputError(f"--weights {self.weights!r}: it is one of {', '.join(_WEIGHTS)}")
        address = self.weights_address
        if self.weights == "code":
            if address is not None:
                raise InputError("--weights-address is for --weights external or fetched: add one")
            return None
        try:
            at = None if address is None else int(address, 0)
            return External(at, fetched=self.weights == "fetched")
        except ValueError:
            raise InputError(
                f"--weights-address {address!r} is no address; write it as 0x90000000"
            ) from None
