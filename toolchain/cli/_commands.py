"""The subcommands by name. The module of one is imported when it is used, and not for help."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperCommand

from toolchain.cli._collector import collector_paused
from toolchain.cli._command import Command
from toolchain.cli._leaving import Group

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "accuracy": (
            "Count how often a model is right on labelled data: float, int8 and the board side by "
            "side."
        ),
        "advise": (
            "Say what to change in a network: each change with the finished plan of the changed "
            "network."
        ),
        "arena": (
            "Place buffers in the smallest arena, and say whether it is proved to be the smallest."
        ),
        "boards": "List the boards, or those that hold a model; make and check your own boards.",
        "compile": "Generate C for a model and build firmware for a board.",
        "contact": (
            "Visit a board for the first time: check it step by step, and write one file to send."
        ),
        "cost": (
            "Known latencies of kernels, in cycles: list, export, import, check. `thimble profile` "
            "measures them on a board, or models them from a trace of an emulated one."
        ),
        "doctor": "List what is installed, what is missing, and how to install it.",
        "edgetpu": "Pipelines of Coral Edge TPUs: plan, split, run, simulate, profile.",
        "export": (
            "Write models as a package for another build system, with everything that it needs."
        ),
        "flash": (
            "Flash compiled firmware with openocd, pyocd, stlink, ST's programmer, dfu or drive."
        ),
        "hil": "Test every board of a bench: the line, the firmware, your models, byte for byte.",
        "ops": "List the operators: names in TFLite and ONNX, types, kernels, limits.",
        "plan": (
            "Show whether a model fits, its memory, its peak, and an operator table. Generates "
            "no files."
        ),
        "profile": (
            "Time each operator and function of a compiled model, in several runs on its board."
        ),
        "quantize": ("Quantise a float ONNX or TFLite model to int8, and report the loss."),
        "report": (
            "Write a page that shows a build: one HTML file that opens in any browser, without a "
            "network."
        ),
        "run": (
            "Run one inference on the board (or in QEMU, or on this machine) and print the outputs."
        ),
        "schedule": (
            "Find the order of operators that needs the least memory, and say whether that is "
            "proved."
        ),
        "sweep": (
            "Plan, compile, verify or profile every combination of models, boards and options."
        ),
        "verify": "Compile, run on the board, and compare every output byte with the reference.",
        "view": "Serve the page of `thimble report` on this machine, and follow the work live.",
        "weights": "Make a blob of a model's weights for existing code, or check a blob.",
    }
)
"""Each file of this folder, and the first line of its help."""


def load(name: str) -> Any:
    """A subcommand with its parameters: the `command`, or the `group`, of its file."""
    with collector_paused():
        module = importlib.import_module(f"{__package__}.{name}")
    if hasattr(module, "group"):
        return typer.main.get_group(module.group)
    single = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    single.command(name=name, cls=Command)(module.command)
    return typer.main.get_command(single)


class Commands(Group):
    """The group `thimble`. It loads the subcommand that a command line names, and no other."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.commands.update({name: TyperCommand(name, help=COMMANDS[name]) for name in COMMANDS})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load(str(name)), rest
