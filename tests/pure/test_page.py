"""The page: its values follow from a plan, and its text is safe whatever a model's names are."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.support.pages import DIGITS, HOSTILE, ROOT, hostile_plan
from tests.support.small_boards import small_board
from toolchain.cli import run
from toolchain.errors import InputError
from toolchain.memory.firmware_size import estimated_need
from toolchain.page.build import Findings, build, document
from toolchain.page.document import Build, Document
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import predict_latency
from toolchain.report.plan import plan_json

pytest.importorskip("vl_convert", reason="the extra [report] is not installed")

from toolchain.page.layout import BOX_HEIGHT, BOX_WIDTH, layered
from toolchain.page.live import LivePage
from toolchain.page.render import page


def _fields(max_slowdown: float | None = None) -> dict[str, Any]:
    plan = plan_model(DIGITS, "netduinoplus2", PlanOptions(max_slowdown=max_slowdown))
    return plan_json(plan, estimated_need(plan), predict_latency(plan))


@pytest.fixture(scope="module", params=[None, 0.5], ids=["whole", "split"])
def digits(request: pytest.FixtureRequest) -> Build:
    fields = _fields(request.param)
    assert bool(request.param) == any(op["part_of"] for op in fields["operators"])
    return build(Findings(fields))


def test_live_bytes_of_buffers_hold_the_footprint(digits: Build) -> None:
    """The bytes drawn at a step are at least those of the plan's footprint, which counts every
    overlap that is possible, and at most those of the buffers one after another."""
    for step, planned in enumerate(digits.steps):
        held: set[int] = set()
        apart = 0
        for buffer in digits.buffers:
            for (begin, low, high), (end, *_) in zip(buffer.runs, buffer.runs[1:], strict=False):
                if begin <= step < end:
                    held |= set(range(buffer.offset + low, buffer.offset + high))
                    apart += high - low
        assert planned.live <= len(held) <= apart
        assert max(held) < digits.arena


STREAMING = ROOT.parent / "shared/models/esphome_v2_okay_nabu.tflite"


@pytest.mark.slow
@pytest.mark.skipif(not STREAMING.exists(), reason=f"{STREAMING} is not there")
def test_a_state_and_its_views_are_one_buffer() -> None:
    """States share their bytes with nothing, though the plan copies some of their views."""
    plan = plan_model(STREAMING, board="nucleo-l476rg")
    fields = plan_json(plan, estimated_need(plan), predict_latency(plan))
    found = build(Findings(fields))
    states = [buffer for buffer in found.buffers if buffer.kind == "state"]
    assert len(states) == len(plan.graph.states)
    for state in states:
        for other in found.buffers:
            apart = other.offset + other.bytes <= state.offset
            assert other is state or apart or state.offset + state.bytes <= other.offset


def test_operators_are_whole_and_counts_add_up(digits: Build) -> None:
    assert sum(len(op.steps) for op in digits.operators) == len(digits.steps)
    assert sum(op.macs for op in digits.operators) == digits.macs
    assert sum(op.count for op in digits.operators) == digits.verdict.count
    for row, op in enumerate(digits.operators):
        assert {digits.steps[step].operator for step in op.steps} == {row}


def test_lines_join_writers_and_readers(digits: Build) -> None:
    """Of boxes that hold each operator once, those of one network with the blocks that serve it."""
    boxes = digits.network.boxes
    held = [row for box in boxes for row in box.operators]
    assert sorted(held) == list(range(len(digits.operators)))
    box_of = {row: at for at, box in enumerate(boxes) for row in box.operators}
    joined = {(line.source, line.target) for line in digits.network.lines}
    (image,) = (at for at, box in enumerate(boxes) if box.side == "input")
    (scores,) = (at for at, box in enumerate(boxes) if box.side == "output")
    assert boxes[image].shape == (1, 8, 8, 1)
    assert scores in {target for _, target in joined}
    for tensor in digits.tensors:
        for reader in tensor.readers:
            outside = tensor.writer < 0
            source = image if outside else box_of[digits.steps[tensor.writer].operator]
            target = box_of[digits.steps[reader].operator]
            assert source == target or (source, target) in joined


def test_a_split_network_has_the_boxes_of_the_whole_one() -> None:
    whole, split = (build(Findings(_fields(most))).network for most in (None, 0.5))
    named = [sorted((box.side, box.name) for box in one.boxes) for one in (whole, split)]
    assert named[0] == named[1]
    assert max(line.tensors for line in split.lines) > 1


def test_the_gap_between_arena_and_peak_is_explained() -> None:
    fields = _fields()
    live = max(op["live_bytes"] for op in fields["operators"])
    larger = build(Findings({**fields, "arena_bytes": live + 60})).peak
    assert f"{live + 60:,} B; at most {live:,} B" in larger
    assert "The other 60 B are gaps" in larger
    assert "gaps" not in build(Findings({**fields, "arena_bytes": live})).peak


def test_a_profile_gives_the_times_and_the_rows_their_bounds() -> None:
    fields = _fields()
    first = fields["operators"][0]
    profile = {
        "total": 500,
        "unit": "cycles",
        "milliseconds": 2.5,
        "basis": "trace",
        "operators": [
            {"name": first["name"], "kind": first["kind"], "count": 400, "instructions": 300}
            | {"bound": 120}
        ],
        "functions": [],
    }
    found = build(Findings(fields, profile=profile))
    assert (found.verdict.milliseconds, found.verdict.basis) == (2.5, "modelled from a trace")
    assert (found.operators[0].count, found.operators[0].bound) == (400, 120)
    assert all(op.count == 0 for op in found.operators[1:])


def test_two_builds_are_compared() -> None:
    fields = _fields()
    smaller = {**fields, "ram_bytes": fields["ram_bytes"] - 100}
    found = document([build(Findings(fields)), build(Findings(smaller))], "thimble report a b")
    (ram,) = (change for change in found.changes if change.name == "RAM")
    assert ram.first is not None
    assert ram.second == ram.first - 100
    assert found.moved == ()


def test_operators_that_moved_are_listed() -> None:
    """One takes longer in the second build, one is not there."""
    first = build(Findings(_fields()))
    slower, *others = sorted(first.operators, key=lambda op: -op.count)
    second = replace(first, operators=(replace(slower, count=2 * slower.count), *others[1:]))
    found = document([first, second], "thimble report a b")
    assert [(one.name, one.first, one.second) for one in found.moved] == [
        (slower.name, slower.count, 2 * slower.count),
        (others[0].name, others[0].count, None),
    ]


@pytest.mark.slow
def test_layers_that_lose_most_by_quantisation_come_first() -> None:
    layer = {"operator": "Conv", "max_error": 0.5}
    layers = [
        {**layer, "tensor": t, "noise_db": db} for t, db in (("a", 30.0), ("b", None), ("c", 9.5))
    ]
    found = build(Findings(_fields(), quantised={"compared": 4, "layers": layers}))
    assert found.quantisation is not None
    assert [one["tensor"] for one in found.quantisation["layers"]] == ["c", "a", "b"]
    text = page(document([found], "thimble report"))
    assert "on 4 samples" in text and "no loss" in text and ">9.5<" in text


class _Elements(HTMLParser):
    """The names of a page's elements, and the text of its data."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.data = ""
        self.links: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self._inside = ("id", "document") in attrs
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.data += data


def _page_of_hostile_names() -> tuple[Document, str]:
    found = document([build(Findings(hostile_plan(_fields())))], f"thimble report '{HOSTILE}'")
    return found, page(found)


def test_names_are_data_wherever_they_stand() -> None:
    found, text = _page_of_hostile_names()
    parsed = _Elements()
    parsed.feed(text)
    assert "img" not in parsed.names
    assert parsed.names.count("script") == 4
    assert json.loads(parsed.data) == json.loads(json.dumps(asdict(found)))
    assert HOSTILE not in text


def test_a_page_loads_nothing_and_is_small() -> None:
    _, text = _page_of_hostile_names()
    parsed = _Elements()
    parsed.feed(text)
    assert parsed.links == ["#main"]
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\((?!#)", text.split("</style>")[0])
    assert len(text.encode()) < 3 << 20


def test_a_page_of_two_hundred_operators_is_below_its_limit() -> None:
    """Twenty times the digits model, in a chain of 200 operators."""
    one = build(Findings(_fields()))
    times = -(-200 // len(one.operators))
    long = replace(
        one,
        operators=one.operators * times,
        steps=one.steps * times,
        tensors=one.tensors * times,
        buffers=one.buffers * times,
        network=replace(one.network, lines=one.network.lines * times),
    )
    assert len(page(document([long], "thimble report")).encode()) < 3 << 20


def test_operators_stand_below_what_they_read() -> None:
    edges = [(0, 1), (1, 2), (0, 2), (2, 3), (0, 4), (4, 3)]
    layout = layered(5, edges)
    for (source, target), line in zip(edges, layout.lines, strict=True):
        (_, above), (_, below) = layout.places[source], layout.places[target]
        assert above < below
        assert (line[0][1], line[-1][1]) == (above + BOX_HEIGHT / 2, below - BOX_HEIGHT / 2)
        assert [y for _, y in line] == sorted(y for _, y in line)
    assert len(set(layout.places)) == 5


def test_an_edge_may_go_upwards() -> None:
    """A block of an operator reads what a later operator wrote for the block before."""
    layout = layered(3, [(0, 1), (1, 2), (2, 1)])
    assert layout.places[1][1] < layout.places[2][1]
    down, up = layout.lines[1:]
    assert [y for _, y in up] == [y for _, y in reversed(down)]
    assert {x for x, _ in up}.isdisjoint(x for x, _ in down)


def test_no_line_runs_behind_a_box() -> None:
    """Between two layers lines bend, beside boxes they are upright; boxes lie apart."""
    random = Random(4)
    edges = [
        (i, j) for i in range(60) for j in range(i + 1, 60) if j == i + 1 or random.random() < 0.06
    ]
    layout = layered(60, edges)
    apart = [
        abs(x - u) >= BOX_WIDTH or abs(y - v) >= BOX_HEIGHT
        for (x, y), (u, v) in combinations(layout.places, 2)
    ]
    assert all(apart)
    for line in layout.lines:
        for (x, y), (u, v) in pairwise(line):
            for a, b in layout.places:
                if max(y, v) > b - BOX_HEIGHT / 2 + 1 and min(y, v) < b + BOX_HEIGHT / 2 - 1:
                    assert x == u
                    assert abs(x - a) > BOX_WIDTH / 2


def test_a_chain_can_be_cut_everywhere_and_a_loop_around_it_nowhere() -> None:
    chain = [(i, i + 1) for i in range(5)]
    assert len(layered(6, chain).cuts) == 5
    assert len({x for x, _ in layered(6, chain).places}) == 1
    assert [y for _, y in layered(6, [*chain, (1, 5)]).cuts] == [
        y for _, y in layered(6, chain).cuts[:2]
    ]


def test_the_command_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert run(["report", str(DIGITS), "-b", "netduinoplus2", "-o", str(out), "--json", "-"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written == {"json_version": 1, "file": str(out), "bytes": out.stat().st_size}


def test_a_model_that_does_not_fit_gets_its_page(tmp_path: Path) -> None:
    ram = [("SRAM", 0x20000000, 3072, 1, "arena data")]
    out = tmp_path / "page.html"
    with small_board("netduinoplus2", tmp_path / "boards", ram) as small:
        assert run(["report", str(DIGITS), "-b", small, "-o", str(out)]) == 0
    text = out.read_text()
    assert "✗ no" in text
    assert f"does not fit {small}" in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a.tflite", "b.tflite", "c.tflite"], "one build, or two"),
        (["a.tflite", "-b", "host", "-b", "host", "-b", "host"], "one build, or two"),
        (["a.tflite", "b.tflite", "-b", "x", "-b", "y", "-b", "z"], "one build, or two"),
    ],
)
def test_more_than_two_builds_are_refused(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_the_server_answers_only_who_names_it() -> None:
    """A page of another name that leads here (DNS rebinding) reads nothing."""
    with LivePage("page {}".format) as live:
        with urlopen(live.url) as answer:
            assert answer.read() == b"page 0"
        live.show("page {}".format)
        with urlopen(live.url + "progress") as answer:
            assert json.load(answer)["version"] == 1
        for wrong in (Request(live.url, headers={"Host": "evil.example"}), live.url + "other"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(wrong)
        with pytest.raises(InputError, match="--port"):
            LivePage("page {}".format, int(live.url.split(":")[-1].strip("/")))


def test_view_says_where_the_page_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["view", str(DIGITS), "-b", "netduinoplus2", "--once"]) == 0
    assert re.search(r"The page is at http://127\.0\.0\.1:\d+/", capsys.readouterr().out)
