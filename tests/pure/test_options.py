"""Options of planning stand once, in PlanOptions; commands derive theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolchain.cli._commands import load
from toolchain.planning.option import options_of
from toolchain.planning.options import Optimise, PlanOptions

TOLD = list(options_of(PlanOptions))
LEFT_OUT = {
    "plan": {"labels", "preprocess"},
    "compile": set[str](),
    "verify": {"labels", "choice", "preprocess"},
    "export": {"choice"},
    "report": {"labels", "scheduler", "allocator", "preprocess"},
}
"""The fields that a command has no option for: its result would not depend on them."""


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_command_that_plans_has_every_option(name: str) -> None:
    parameters: dict[str, Any] = {p.opts[0]: p for p in load(name).params}
    wanted = [
        option
        for told in TOLD
        if told.field not in LEFT_OUT[name]
        for option in (told.option, *told.option.parts)
    ]
    shown = [parameters[option.name] for option in wanted]
    assert [(p.help, p.metavar or "") for p in shown] == [(o.help, o.unit) for o in wanted]
    order = list(parameters)
    places = [order.index(option.name) for option in wanted]
    assert places == list(range(places[0], places[0] + len(wanted)))


def test_what_is_left_out_has_the_field_s_default() -> None:
    assert PlanOptions.of({}) == PlanOptions()
    left_out = {told.option.key: told.option.left_out(told.default) for told in TOLD}
    assert PlanOptions.of(left_out) == PlanOptions()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (PlanOptions(), ""),
        (PlanOptions(ram_bytes=98304, max_slowdown=0.005), "--ram 98304 --max-slowdown 0.5%"),
        (PlanOptions(optimise=Optimise.SPEED, fast=True), "--optimise speed --plan fast"),
        (PlanOptions(nearly_free=False, dead_channels=False), "--no-split --keep-dead-channels"),
        (
            PlanOptions(stream_input=True, streamed_input="image"),
            "--stream-input --streamed-input image",
        ),
        (PlanOptions(choice=2, ram_bytes=98304, nearly_free=False), "--choice 2"),
    ],
)
def test_the_words_that_ask_for_a_plan(options: PlanOptions, words: str) -> None:
    assert options.words == words.split()


def test_what_is_read_from_words_has_these_words() -> None:
    given = {
        "scheduler": "hmcos",
        "flash": "1.5M",
        "split_seconds": 2.5,
        "one_bank": True,
        "float": True,
        "input_shape": ["a=1x2", "b=3"],
        "kernels": "thimble",
        "decode": "yolo",
        "score_threshold": 0.5,
    }
    options = PlanOptions.of(given)
    assert options.flash_bytes == 1536 * 1024
    assert options.input_shapes == (("a", (1, 2)), ("b", (3,)))
    assert " ".join(options.words) == (
        "--scheduler hmcos --flash 1572864 --split-seconds 2.5 --one-bank --float "
        "--input-shape a=1x2 --input-shape b=3 --decode yolo:score_threshold=0.5 --kernels thimble"
    )
    assert replace(options, choice=1).words[-2:] != ["--no-split"]
