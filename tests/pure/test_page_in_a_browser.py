"""The page in a real browser: nothing on its console, and what one points at answers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.long import mostly_long
from tests.support.pages import DIGITS, HOSTILE, browser, hostile_plan
from toolchain.boards import board as find_board
from toolchain.cli import run
from toolchain.memory.firmware_size import estimated_need
from toolchain.page.build import Findings, build, document
from toolchain.page.document import Bank, Build
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import predict_latency
from toolchain.report.plan import plan_json
from toolchain.report.sweep import SweepRow

pytest.importorskip("vl_convert", reason="the extra [report] is not installed")

from toolchain.page.live import LivePage
from toolchain.page.render import page, waiting_page
from toolchain.page.sweep import sweep_html, swept_page

pytestmark = pytest.mark.slow
_PATIENCE_SECONDS = 300.0


@pytest.fixture(scope="module", params=mostly_long([False, True], [True]), ids=["light", "dark"])
def opened(request: pytest.FixtureRequest) -> Iterator[Any]:
    driver = browser(dark=request.param)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def built() -> Build:
    """The digits model, split, with names that are HTML."""
    plan = plan_model(DIGITS, "netduinoplus2", PlanOptions(max_slowdown=0.5))
    fields = plan_json(plan, estimated_need(plan), predict_latency(plan))
    return build(Findings(hostile_plan(fields)))


def _show(driver: Any, builds: list[Build], folder: Path) -> None:
    file = folder / "page.html"
    file.write_text(page(document(builds, "thimble report")), encoding="utf-8")
    _open(driver, file)


def _open(driver: Any, file: Path) -> None:
    driver.get_log("browser")
    driver.get(file.as_uri())
    _wait_for(driver, "document.body.dataset.ready === 'yes'")


def _wait_for(driver: Any, condition: str) -> None:
    """Until an expression of JavaScript is true."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while driver.execute_script(f"return {condition}") is not True:
        assert time.monotonic() < end, (condition, driver.get_log("browser"))
        time.sleep(0.05)


@pytest.fixture
def shown(opened: Any, built: Build, tmp_path: Path) -> Any:
    _show(opened, [built], tmp_path)
    return opened


def _all(driver: Any, selector: str) -> list[Any]:
    found: list[Any] = driver.find_elements("css selector", selector)
    return found


def _text(driver: Any, selector: str) -> str:
    return str(driver.find_element("css selector", selector).get_property("textContent"))


def test_nothing_is_on_the_console_and_every_block_is_drawn(shown: Any, built: Build) -> None:
    assert shown.get_log("browser") == []
    assert len(_all(shown, "#b0-arena .buffer")) == len(built.buffers)
    assert len(_all(shown, "#b0-network .node")) == len(built.network.boxes)
    assert len(_all(shown, "#b0-network .edge")) == len(built.network.lines)
    assert len(_all(shown, "#b0-operators tbody tr")) == len(built.operators)
    for chart in ("bars", "roofline", "memory"):
        assert _all(shown, f"#b0-{chart} svg"), chart


def test_names_stay_text(shown: Any) -> None:
    assert _all(shown, "img") == []
    assert HOSTILE in shown.title
    assert shown.find_element("css selector", "h1").text.startswith("</script><img")


def test_pointing_at_a_block_tells_of_it(shown: Any, built: Build) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    blocks = _all(shown, "#b0-arena .buffer")
    activations = [i for i, buffer in enumerate(built.buffers) if buffer.tensors]
    largest = max(activations, key=lambda i: built.buffers[i].bytes)
    shown.execute_script("arguments[0].scrollIntoView({block: 'center'})", blocks[largest])
    within = (0, 6)  # its middle is on the edge between two steps' bytes
    ActionChains(shown).move_to_element_with_offset(blocks[largest], *within).perform()
    told = _text(shown, "#tip")
    buffer = built.buffers[largest]
    shape = "\u00d7".join(map(str, built.tensors[buffer.tensors[0]].shape))
    for part in (buffer.name, f"{buffer.bytes:,} B", shape, "written by", "read by"):
        assert part in told


def test_arrow_keys_walk_from_block_to_block(shown: Any, built: Build) -> None:
    from selenium.webdriver.common.keys import Keys

    first = shown.find_element("css selector", "#b0-arena .buffer[tabindex='0']")
    first.send_keys(Keys.ARROW_RIGHT)
    assert built.buffers[1].name in _text(shown, "#tip")
    assert len(_all(shown, "#b0-arena .buffer[tabindex='0']")) == 1


def test_sorting_by_a_column(shown: Any, built: Build) -> None:
    head = next(h for h in _all(shown, "#b0-operators th") if h.text == "products")
    for order, backwards in (("descending", True), ("ascending", False)):
        head.find_element("css selector", "button").click()
        assert head.get_attribute("aria-sort") == order
        place = _all(shown, "#b0-operators th").index(head)
        cells = [
            int(row.find_elements("css selector", "td")[place].text.replace(",", ""))
            for row in _all(shown, "#b0-operators tbody tr")
        ]
        assert cells == sorted((op.macs for op in built.operators), reverse=backwards)


def test_filtering_by_a_kind(shown: Any, built: Build) -> None:
    wanted = next(op.functions[0] for op in built.operators if op.functions)
    shown.find_element("css selector", "#b0-operators input").send_keys(wanted)
    kept = sum(wanted in op.functions for op in built.operators)
    assert 0 < kept < len(built.operators)
    assert len(_all(shown, "#b0-operators tbody tr")) == kept
    assert f"{kept} of {len(built.operators)}" in _text(shown, "#b0-operators .tools")


def _box(driver: Any, built: Build) -> tuple[Any, int]:
    """A box of the picture whose operator has a C function, in view, and the operator's row."""
    boxes = built.network.boxes
    at, row = next(
        (at, box.operators[0])
        for at, box in enumerate(boxes)
        if not box.side and built.operators[box.operators[0]].functions
    )
    box = _all(driver, "#b0-network .node")[at]
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    return box, row


def test_a_click_on_a_box_tells_of_it_there_and_leads_to_its_row(shown: Any, built: Build) -> None:
    from selenium.webdriver.common.keys import Keys

    box, row = _box(shown, built)
    before = shown.execute_script("return scrollY")
    box.click()
    assert shown.execute_script("return scrollY") == before
    told = _text(shown, "#b0-network .detail")
    for part in (built.operators[row].name, *built.operators[row].functions, "from input"):
        assert part in told
    shown.find_element("css selector", "#b0-network .detail button:not(.close)").click()
    (chosen,) = _all(shown, "#b0-operators tr.chosen")
    assert chosen == shown.switch_to.active_element
    assert built.operators[row].name in chosen.text
    opened = chosen.find_element("xpath", "following-sibling::tr[1]")
    assert opened.get_attribute("class") == "opened"
    assert built.operators[row].functions[0] in opened.text
    chosen.click()
    assert _all(shown, "#b0-operators .opened") == []
    box.send_keys(Keys.ENTER)
    assert shown.find_element("css selector", "#b0-network .detail").is_displayed()
    box.send_keys(Keys.ESCAPE)
    assert not shown.find_element("css selector", "#b0-network .detail").is_displayed()


def test_the_network_zooms_is_dragged_and_searched(shown: Any, built: Build) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    frame = shown.find_element("css selector", "#b0-network .frame")
    shown.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)

    def width() -> float:
        return float(frame.find_element("css selector", "svg").get_attribute("width"))

    first = width()
    frame.send_keys("+++++")
    assert width() > 2.9 * first
    assert frame.get_property("scrollWidth") > frame.get_property("clientWidth")
    left = frame.get_property("scrollLeft")
    ActionChains(shown).move_to_element(frame).click_and_hold().move_by_offset(
        -60, 0
    ).release().perform()
    assert frame.get_property("scrollLeft") == left + 60
    frame.send_keys("0")
    assert frame.get_property("scrollWidth") == frame.get_property("clientWidth")
    finder = shown.find_element("css selector", "#b0-network input")
    finder.send_keys("4x4x32")
    wide = [line for line in built.network.lines if line.shape == (1, 4, 4, 32)]
    assert len(_all(shown, "#b0-network .found")) == len({line.source for line in wide}) > 0
    assert len(_all(shown, "#b0-network .current")) == 1
    texts = [text.text for text in _all(shown, "#b0-network .shape")]
    assert any(text.startswith("1\u00d7") for text in texts)


def test_no_figure_is_cut_on_a_narrow_screen(shown: Any) -> None:
    shown.set_window_size(500, 900)  # the least that this browser takes
    assert shown.execute_script("return document.body.scrollWidth <= innerWidth")
    table = shown.find_element("css selector", "#b0-operators .rows")
    assert table.get_property("scrollWidth") <= table.get_property("clientWidth")
    assert shown.find_element("css selector", "#b0-operators .narrow").is_displayed()
    shown.set_window_size(1280, 1000)
    assert table.get_property("scrollWidth") <= table.get_property("clientWidth")
    assert not shown.find_element("css selector", "#b0-operators .narrow").is_displayed()


def test_the_network_by_kernel(shown: Any, built: Build) -> None:
    for option in _all(shown, "#b0-network option"):
        if option.text == "kernel":
            option.click()
    nodes = _all(shown, "#b0-network .node")
    for node, box in zip(nodes, built.network.boxes, strict=True):
        if box.side:
            assert box.side in node.text
        else:
            op = built.operators[box.operators[0]]
            assert (op.functions[0][:20] if op.functions else "no code") in node.text


def test_a_part_of_the_steps(shown: Any, built: Build) -> None:
    options = _all(shown, "#b0-arena option")
    assert options[0].text == "all steps"
    options[1].click()
    assert 0 < len(_all(shown, "#b0-arena .buffer")) < len(built.buffers)


def test_banks_are_named_above_the_blocks(opened: Any, built: Build, tmp_path: Path) -> None:
    half = built.arena // 2
    banks = (Bank("DTCM", 0, half), Bank("AXI_SRAM", half, built.arena - half))
    _show(opened, [replace(built, banks=banks)], tmp_path)
    last = (
        "[...document.querySelectorAll('#b0-arena svg .buffer, #b0-arena svg .bank-name')].at(-1)"
    )
    assert opened.execute_script(f"return {last}.textContent") == (
        f"AXI_SRAM: {built.arena - half:,} B"
    )
    said = {shape.get_attribute("aria-label") for shape in _all(opened, "#b0-arena .buffer")}
    assert all(" in DTCM" in label or " in AXI_SRAM" in label for label in said)
    assert opened.get_log("browser") == []


def test_two_builds_stand_side_by_side(opened: Any, built: Build, tmp_path: Path) -> None:
    _show(opened, [built, built], tmp_path)
    assert opened.get_log("browser") == []
    first, second = _all(opened, ".build")
    assert [letter.text for letter in _all(opened, "h1 .letter, .build > h2 .letter")] == [*"ABAB"]
    heads = [build.find_elements("css selector", "h2") for build in (first, second)]
    for one, other in zip(*heads, strict=True):
        assert one.location["y"] == other.location["y"]
    assert first.location["y"] == second.location["y"]
    assert first.location["x"] < second.location["x"]
    assert len(_all(opened, ".changes tbody tr")) > 5


def test_a_pipeline_and_its_simulation(opened: Any, tmp_path: Path) -> None:
    """Stages, and the first twelve frames on each device; a name that is HTML stays text."""
    model = tmp_path / f"{HOSTILE.replace('/', '')}.tflite"
    model.write_bytes(DIGITS.read_bytes())
    page_of_plan, page_of_frames, folder = (tmp_path / n for n in ("p.html", "f.html", "split"))
    command = ["edgetpu", "plan", str(model), "--max-sticks", "2", "--html", str(page_of_plan)]
    assert run(command) == 0
    assert run(["edgetpu", "split", str(model), "--stages", "2", "-o", str(folder)]) == 0
    assert run(["edgetpu", "simulate", str(folder), "--html", str(page_of_frames)]) == 0
    for file, charts in (
        (page_of_plan, ("stages", "times", "devices")),
        (page_of_frames, ("stages", "times", "timeline")),
    ):
        _open(opened, file)
        assert opened.get_log("browser") == []
        assert _all(opened, "img") == []
        for chart in charts:
            assert _all(opened, f"#{chart} svg"), chart
        if file == page_of_plan:
            (card, *_) = _all(opened, ".flow .card")
            assert "Stage 0 on Edge TPU 0" in card.text
            assert "CONV_2D" in card.text
            assert "parameters stay in the cache" in card.text
    bars = _all(opened, "#timeline .mark-rect.layer_0_marks path")
    assert len(bars) == 2 * 12


def test_a_live_page_follows_the_work(opened: Any, built: Build) -> None:
    """Progress first; the build as soon as it is known; and that all is known."""
    opened.get_log("browser")
    with LivePage(partial(waiting_page, HOSTILE, "thimble view")) as live:
        live.report("splitting operators", 3, 10)
        opened.get(live.url)
        _wait_for(opened, "document.querySelector('#live progress').value === 3")
        assert _text(opened, "#live span") == "splitting operators"
        live.report("splitting operators", 4, 10, [(40_000, 0.0)])
        _wait_for(opened, "document.querySelectorAll('#live circle').length === 1")
        live.report("splitting operators", 5, 10, [(40_000, 0.0), (30_000, 0.02), (20_000, 0.1)])
        _wait_for(opened, "document.querySelectorAll('#live circle').length === 3")
        live.report("placing tensors")
        assert "3 ways to split so far" in opened.find_element(
            "css selector", "#live svg"
        ).get_attribute("aria-label")
        live.show(partial(page, document([built], "thimble view")))
        _wait_for(opened, "document.querySelectorAll('.node').length > 0")
        live.end("All is known.")
        _wait_for(opened, "document.querySelector('#live').dataset.ended === 'true'")
        assert not _all(opened, "#live svg")
        assert len(_all(opened, "#b0-network .node")) == len(built.network.boxes)
        opened.get("about:blank")
    found = [entry for entry in opened.get_log("browser") if "favicon" not in entry["message"]]
    assert found == []


def test_the_rows_of_a_sweep_filter_and_sort(opened: Any, tmp_path: Path) -> None:
    """A model's file is named like HTML; the front is that of the rows that are left."""
    model = tmp_path / "<img src=x>.tflite"
    shutil.copy(DIGITS, model)
    file = tmp_path / "sweep.html"
    line = [
        "sweep",
        str(model),
        "-b",
        "netduinoplus2",
        "--ram",
        "none,4K,1K",
        "--html",
        str(file),
        "-j",
        "1",
    ]
    assert run([*line, "-b", "netduinoplus2,mps2-an500", "-o", str(tmp_path / "r.sqlite")]) == 0
    _open(opened, file)
    assert opened.get_log("browser") == []
    assert _all(opened, "img") == []
    assert len(_all(opened, "#rows tbody tr")) == 6
    assert _all(opened, "#front svg")
    board = next(s for s in _all(opened, "#filters select") if "mps2-an500" in s.text)
    board.find_element("css selector", "option[value='mps2-an500']").click()
    assert _text(opened, "#count") == "3 of 6 rows, 2 on the front"
    (only,) = _all(opened, "#filters input[type=checkbox]")
    only.click()
    assert len(_all(opened, "#rows tbody tr")) == 2
    titles = [head.text for head in _all(opened, "#rows thead button")]
    assert "differ" not in titles  # nothing was compared
    at = titles.index("RAM")
    _all(opened, "#rows thead button")[at].click()
    used = [_all(row, "td")[at].text for row in _all(opened, "#rows tbody tr")]
    assert used == sorted(used, key=lambda text: int(text.split()[0].replace(",", "")))
    _all(opened, "#rows tbody tr")[0].click()
    assert "thimble plan" in _text(opened, "#rows .opened")
    assert "--ram 4K" in _text(opened, "#rows .opened")
    assert opened.get_log("browser") == []


def test_models_by_boards_say_what_fits_and_what_is_lacking(opened: Any, tmp_path: Path) -> None:
    """A cell for each pair, of the quickest row that fits, or what the board has too little of."""
    boards = ("bluepill-f103c8", "nucleo-h743zi")
    needs = {"small": 4 << 10, "large": 100 << 10, "huge": 2 << 20}
    rows = []
    for model, ram in needs.items():
        for board in boards:
            fits = ram <= find_board(board).ram_bytes
            shown = {
                "name": f"plan {model}",
                "suite": "",
                "model": model,
                "group": f"{model} ones",
                "board": board,
                "do": "plan",
                "ok": fits,
                "cached": True,
                "kind": "" if fits else "does-not-fit",
                "error": "",
                "arena": ram,
                "ram": ram,
                "flash": 30 << 10,
                "basis": "predicted",
                "differing": None,
                "seconds": None,
                "best": False,
            }
            rows += [
                SweepRow(options="", milliseconds=4.5, **shown),
                SweepRow(options="optimise=speed", milliseconds=1.25, **shown),
            ]
    file = tmp_path / "sweep.html"
    file.write_text(sweep_html(swept_page("models", "thimble sweep", "today", rows)))
    _open(opened, file)
    cells = [cell.text for cell in _all(opened, "#matrix tbody td")]
    assert cells == ["1.25", "1.25", "\u2717 RAM", "1.25", "\u2717 RAM", "\u2717 RAM"]
    assert [row.text.split()[-3:] for row in _all(opened, "#boards-h ~ .scroll tbody tr")] == [
        ["1", "of", "3"],
        ["2", "of", "3"],
    ]
    _all(opened, "#matrix td.fits button")[2].click()
    assert "2 on the front" in _text(opened, "#count")  # one of each model that fits somewhere
    told = _text(opened, "#matrix .opened")
    assert "large on nucleo-h743zi" in told
    assert "102,400 B" in told
    group = next(s for s in _all(opened, "#filters select") if "large ones" in s.text)
    group.find_element("css selector", "option[value='large ones']").click()
    assert len(_all(opened, "#matrix tbody tr")) == 1
    assert opened.get_log("browser") == []
