"""`thimble cost import` of a contact file: residuals, a fit judged by what it has not seen."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from toolchain.boards import board
from toolchain.cli import run
from toolchain.contact.archive import DOCUMENT, read_contact, write_contact
from toolchain.contact.document import (
    Access,
    Contact,
    Outcome,
    Pair,
    Result,
    Sample,
)
from toolchain.contact.residuals import compared, fit, residuals
from toolchain.contact.waits import Waits, fitted_waits, lines_for_file
from toolchain.cost.basis import Basis
from toolchain.cost.correction import OF_ALL, Correction
from toolchain.cost.database import Database
from toolchain.cost.key import Build
from toolchain.cost.measured import measured_model
from toolchain.cost.predicted import predicted_model
from toolchain.errors import InputError
from toolchain.files.formats import CONTACT
from toolchain.ops import forms
from toolchain.ops.lowering import lower

BUILD = Build("gcc", "cmsis-nn")
BOARD = "nucleo-f446re"
CALL = 300.0
PAIR = Pair("load_use", 3.5, 3.0)
WAITS = Access("FLASH", "a read from a new line", 12.0, 5.0, 6.75, 11.0, 5, lines=(1.0, 0.25, 0.9))
KERNELS = {"convolve": 1.5, "pool": 2.0, "add": 1.5}
"""Of the formula's cycles, what a call really takes, besides `CALL`."""


def sample(kernel: str, number: int, cycles: float, predicted: int) -> Sample:
    count = round(cycles)
    key = (f"{kernel}@0123", f"shape {number}")
    return Sample("kind", *key, "cycles", Basis.MEASURED, count + 9, count, predicted, 10, 0)


def visited(emulated: bool = False, noise: float = 0.0, most: int = 16) -> Contact:
    """A board on which the formula is wrong by `KERNELS`."""
    rng = np.random.default_rng(1)
    samples = []
    for kernel, factor in KERNELS.items():
        for number in range(most):
            predicted = int(rng.integers(200, 200_000))
            real = (factor * predicted + CALL) * float(rng.uniform(1 - noise, 1 + noise))
            samples.append(sample(kernel, number, real, predicted))
    result = Result("operators", "operators", Outcome.OK, ("all is well",), 1.5, {"equal": []})
    return Contact(
        CONTACT.name, CONTACT.version, "0.1.0", 7, BOARD, "stm32f446", "cortex-m4", 180_000_000,
        emulated,
        BUILD.compiler, BUILD.cmsis_nn, (result,), tuple(samples), (WAITS,), (PAIR,),
    )  # fmt: skip


def test_a_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "c.zip"
    write_contact(visited(), file)
    assert read_contact(file) == visited()
    written = file.read_bytes()
    write_contact(visited(), file)
    assert file.read_bytes() == written


def zipped(file: Path, name: str, text: str) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda file: file.write_bytes(b"PK\x03\x04 and no more"), "is no contact file"),
        (lambda file: zipped(file, "other.json", "{}"), "holds no contact.json"),
        (lambda file: zipped(file, DOCUMENT, "{"), "is not JSON"),
        (lambda file: zipped(file, DOCUMENT, '{"format": "x"}'), "is none of"),
        (
            lambda file: zipped(file, DOCUMENT, json.dumps({"format": CONTACT.name, "version": 9})),
            "is of version 9; this Thimble reads 1",
        ),
        (
            lambda file: zipped(file, DOCUMENT, json.dumps({"format": CONTACT.name, "version": 1})),
            "the field 'thimble' is missing",
        ),
        (lambda file: zipped(file, DOCUMENT, " " * (1 << 26 | 1)), "declares 67,108,865 bytes"),
    ],
    ids=["no zip", "no document", "no JSON", "other format", "newer", "field", "large"],
)
def test_a_damaged_file_is_named(tmp_path: Path, write: Callable[[Path], None], said: str) -> None:
    file = tmp_path / "c.zip"
    write(file)
    with pytest.raises(InputError, match=said):
        read_contact(file)


def test_residuals_are_those_of_all_and_of_each_kernel() -> None:
    found = residuals(compared(visited()))
    assert [one.samples for one in found] == [48, 16, 16, 16]
    assert found[0].kernel == OF_ALL and found[1].kernel == "pool"
    assert 1.5 < found[0].ratio < 2.0 < found[1].ratio
    assert found[1].mean_error > found[2].mean_error and found[1].worst_error < -0.5


def test_a_fit_finds_what_is_wrong_with_the_formula() -> None:
    found = fit(compared(visited()))
    assert found is not None and found.samples == 48 and found.held_out == 12
    assert found.error_before > 0.3 and found.error_after < found.error_before / 4
    for kernel, factor in KERNELS.items():
        assert found.corrections[kernel].factor == pytest.approx(factor, rel=0.06)
    assert 0 < found.corrections[OF_ALL].call_cycles < 2 * CALL


def test_a_fit_of_nothing_but_noise_is_told_not_to_help() -> None:
    exact = [
        replace(one, warm=round(one.predicted * (0.8 if i % 2 else 1.25)))
        for i, one in enumerate(compared(visited()))
    ]
    found = fit(exact)
    assert found is not None and not found.helps
    assert fit(exact[:5]) is None


def test_wrong_bytes_and_instructions_are_no_measurements() -> None:
    whole = visited()
    first, second, *_ = whole.samples
    changed = (replace(first, differing=1), replace(second, unit="instructions"))
    assert not compared(replace(whole, samples=changed))


def test_waits_of_a_bank_are_fitted_and_judged_by_other_reads() -> None:
    """An H743 whose flash answers two cycles later than its file says."""
    h7 = board("nucleo-h743zi")
    bank = h7.memories[0]
    assert bank.timing is not None
    said = bank.timing.read_cycles

    def access(what: str, stall: float, **more: object) -> Access:
        return Access(bank.name, what, 4 + stall, 4.0, predicted_stall=said, **more)  # type: ignore[arg-type]

    real = said + 2.0
    read = access("read", real + 0.1, sequential=4 + real / 8, random=4 + real, lines=(1, 0.125, 1))
    call = access("call", real - 0.1, lines=(1, 0, 0))
    whole = replace(visited(), board=h7.name, accesses=(read, call))
    (found,) = fitted_waits(whole)
    assert found.after == Waits(real, 0.0) and found.before == Waits(said, 0.0)
    assert (found.accesses, found.held_out) == (2, 2)
    assert found.error_before == pytest.approx((2 + 2 / 8) / 2) and found.error_after < 0.01
    assert found.helps and not fitted_waits(replace(whole, emulated=True))
    table, line = lines_for_file(h7, found)
    clocks = {t.timing_name: t.timing for t in h7.chip.banks if t.timing}["flash"]
    assert table == "[timing.flash]"
    assert line == f"first_clocks = {clocks.first_clocks + 2 // clocks.divider}"
    assert not lines_for_file(h7, replace(found, after=found.before))


def test_lines_of_two_lengths_tell_both_waits() -> None:
    one = replace(WAITS, first=5 + 11.0, parts=1, predicted_stall=9)
    two = replace(WAITS, first=5 + 11.0 + 3 * 2.0, parts=4, predicted_stall=9, sequential=None)
    (found,) = fitted_waits(replace(visited(), accesses=(one, two)))
    assert found.after == Waits(11.0, 2.0)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's measurements."""
    file = tmp_path / "own.sqlite"
    monkeypatch.setenv("THIMBLE_MEASUREMENTS", str(file))
    return file


def test_what_is_measured_is_kept_and_told(
    tmp_path: Path, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "contact.zip"
    write_contact(visited(noise=0.02), file)
    assert run(["cost", "import", str(file), "--no-keep"]) == 0
    assert not own.exists() and "Kept" not in capsys.readouterr().out
    assert run(["cost", "import", str(file)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "all of cortex-m4 48 measured / predicted" in said
    assert "FLASH: a read from a new line waits 7.0 cycles, the chip's file says 5" in said
    assert "FLASH: fitted to 1 kinds of access, read_cycles 5 -> 7, burst_cycles 0 -> 0; 2" in said
    assert "off by 1.00 cycles before, 0.15 after [timing.flash] first_clocks = 2 These" in said
    assert "load_use: 3.50 cycles, 3.00 by the table" in said
    assert "judged by 12 that were held out: error" in said
    assert f"Kept in {own}: 48 measurements, and the fit." in said
    with Database(own) as database:
        assert {row.basis for row in database.rows(BOARD, BUILD)} == {Basis.MEASURED}
        corrections = database.corrections(BOARD, BUILD)
    assert corrections.keys() == {OF_ALL, *KERNELS}
    assert run(["cost", "import", str(file), "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["measurements"] == 0 and again["fit"]["kept"]
    assert again["waits"][0]["file"] == ["[timing.flash]", "first_clocks = 2"]


def test_nothing_is_kept_of_an_emulated_board(
    tmp_path: Path, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "contact.zip"
    write_contact(visited(emulated=True), file)
    assert run(["cost", "import", str(file)]) == 0
    assert "Kept: nothing. An emulated board's cycles are modelled" in capsys.readouterr().out
    assert not own.exists()


def test_predictions_are_corrected_by_kernel() -> None:
    target = board(BOARD)
    predicted = predicted_model(target)
    rng = np.random.default_rng(2)
    lowered = [lower(forms()[kind].sample(rng), target.core) for kind in ("add", "softmax")]
    plain = [predicted.cost(one, 0).count for one in lowered]
    name = lowered[0].kernels[0].title
    corrections = {OF_ALL: Correction(2.0, 0.0), name: Correction(3.0, 10.0)}
    model = measured_model([], predicted, corrections)
    assert [model.cost(one, 0).count for one in lowered] == [3 * plain[0] + 10, 2 * plain[1]]
    assert model.cost(lowered[0], 0).basis is Basis.PREDICTED
    assert model.copies([64]).count == 2 * predicted.copies([64]).count


def test_a_damaged_correction_is_named(own: Path) -> None:
    with Database(own) as database:
        database.put_corrections(BOARD, BUILD, {"add": Correction(1e9, 0.0)})
        with pytest.raises(InputError, match="the correction of 'add' is damaged"):
            database.corrections(BOARD, BUILD)
