"""Texts of strangers where they are shown: on a terminal, a page, a picture."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from toolchain.cli import run
from toolchain.cli._console import error_console, output_console
from toolchain.files.printable import printable
from toolchain.files.texts import xml_text
from toolchain.page.render import waiting_page

UNSEEN = [
    *map(chr, (*range(9), *range(11, 32), *range(0x7F, 0xA0))),
    *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)),
    *map(chr, (*range(0x200B, 0x200E), 0x2060, 0xFEFF, 0x00AD, 0x180E, 0x2028, 0x2029)),
    *map(chr, (0xD800, 0xDC80, 0xDFFF, 0xFFFE, 0xFFFF, 0xE0001, 0xE0041, 0x3164, 0x10FFFF)),
]


@pytest.mark.parametrize("character", UNSEEN, ids=ascii)
def test_what_is_not_seen_is_shown(character: str) -> None:
    shown = printable(f"a{character}b")
    assert character not in shown and shown.isprintable() and len(shown) > 2


def test_what_is_seen_stays() -> None:
    text = "conv2d/Größe_模型 [0] é\n\t\U0001f600 \N{NO-BREAK SPACE}"
    assert printable(text) == text


def test_other_characters_stay_other_texts() -> None:
    """A page knows tensors by their names."""
    assert len({printable(f"a{character}") for character in UNSEEN}) == len(UNSEEN)


def test_consoles_pages_and_pictures_use_it(capfd: pytest.CaptureFixture[str]) -> None:
    text = "".join(UNSEEN)
    output_console().print(text, markup=False)
    error_console().print(text, markup=False)
    said = capfd.readouterr()
    drawn = ElementTree.fromstring(f"<text>{xml_text(text)}</text>").text
    for shown in (said.out, said.err, waiting_page(text, text, 0), drawn):
        assert shown is not None and not set(shown) & set(UNSEEN)


def test_a_file_is_named_in_an_error_as_it_can_be_seen(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "no\u202eetilft.such\x1b[31m\udc80.tflite"]) == 2
    said = "".join(capfd.readouterr().err.split())
    assert "no\\u202eetilft.such\u241b[31m\\udc80.tflite" in said
