"""Options that several subcommands share. Options of planning are in `planning.options`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from toolchain.cli import _completion as completion
from toolchain.cli._console import note
from toolchain.cli._groups import option
from toolchain.device.patience import RUN_SECONDS
from toolchain.errors import InputError
from toolchain.ir import External

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
        "without a board (STM32U575ZI: to plan, and for C). EMULATED:TARGET is an emulated "
        "board with the memories and clock of another board or chip, as mps2-an500:nucleo-h743zi. "
        "BOARD@BANK puts the weights into that bank, as f746g-disco@QSPI.",
        autocompletion=completion.targets,
    ),
]


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
