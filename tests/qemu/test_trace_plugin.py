"""The plugin of QEMU that counts: against counts by hand, a cache in Python, and a real model."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.bare import BEGIN, END, OUTSIDE, end_of_operator, traced
from toolchain.boards import Board, Cache, board
from toolchain.boards.memory import Cached, Replacement
from toolchain.cli import run
from toolchain.cycles.memory_system import MemorySystem, Region
from toolchain.cycles.trace import Traffic
from toolchain.device import trace_plugin
from toolchain.device.compiler import BuildError
from toolchain.device.session import open_board
from toolchain.errors import InputError, LinkError, MissingToolError

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
MODEL = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
BOARDS = ("mps2-an386", "mps3-an547")


@pytest.fixture(params=BOARDS)
def emulated(request: pytest.FixtureRequest) -> Board:
    return board(request.param)


BRANCHES = """
nested:
  mov r0, #3
outer:
  mov r1, #4
inner:
  subs r1, #1
inner_branch:
  bne inner
call:
  bl called
  subs r0, #1
outer_branch:
  bne outer

  mov r2, #6
in_it_block:
  tst r2, #1
  ittt eq
skipped_or_not:
  addeq r3, #1
  addeq r3, #1
branch_in_it_block:
  beq even
odd:
  nop
even:
  subs r2, #1
it_block_again:
  bne in_it_block

  mov r2, #5
fall_in:
  nop
own_middle:             // the block that begins before it jumps into its own middle
  subs r2, #1
middle_branch:
  bne own_middle

  ldr r3, =DEVICE
  mov r2, #7
device:
  nop
device_read:            // the emulator leaves the block here, and translates the rest anew
  ldr r0, [r3]
device_after:
  nop
  subs r2, #1
device_branch:
  bne device

  mov r0, #1
  cbz r0, never
cbnz_at:
  cbnz r0, table
never:
  nop
table:
  tbb [pc, r0]
offsets:
  .byte 1, 2
  nop
to_here:
"""
LOOPS = """
  mov r2, #9
  wls lr, r2, out
low_overhead:
  nop
low_overhead_end:
  le lr, low_overhead
  mov r2, #0
while_none:
  wls lr, r2, out
  nop
out:
"""
CALLED = """
called:
  nop
called_return:
  bx lr
"""
EXECUTED_AND_TAKEN = {
    "nested": (1, 0),
    "outer": (3, 0),
    "inner": (12, 0),
    "inner_branch": (12, 9),
    "call": (3, 3),
    "called": (3, 0),
    "called_return": (3, 3),
    "outer_branch": (3, 2),
    "in_it_block": (6, 0),
    "skipped_or_not": (6, 0),
    "branch_in_it_block": (6, 3),
    "odd": (3, 0),
    "even": (6, 0),
    "it_block_again": (6, 5),
    "fall_in": (1, 0),
    "own_middle": (5, 0),
    "middle_branch": (5, 4),
    "device": (7, 0),
    "device_read": (7, 0),
    "device_after": (7, 0),
    "device_branch": (7, 6),
    "cbnz_at": (1, 1),
    "table": (1, 1),
    "to_here": (1, 0),
}
LOW_OVERHEAD = {"low_overhead": (9, 0), "low_overhead_end": (9, 8), "while_none": (1, 1)}


def test_executions_and_taken_branches_are_exact(emulated: Board, tmp_path: Path) -> None:
    assert emulated.counter is not None
    body = BRANCHES.replace("DEVICE", f"{emulated.counter.register:#x}")
    expected = dict(EXECUTED_AND_TAKEN)
    if emulated.core.mve:
        body += LOOPS
        expected |= LOW_OVERHEAD
    found = traced(emulated, BEGIN + body + END, tmp_path, after=CALLED)
    (section,) = found.trace.sections
    counts = {name: section.counts[found.labels[name]] for name in expected}
    assert {name: (c.executions, c.taken) for name, c in counts.items()} == expected
    assert found.labels["never"] not in section.counts
    taken = {at for at, c in section.counts.items() if c.taken}
    assert taken == {found.labels[name] for name, (_, times) in expected.items() if times}


def test_sections_are_of_the_run_and_of_each_operator(emulated: Board, tmp_path: Path) -> None:
    """Stores outside of the run, and not to a table's words, close none."""
    first, second = end_of_operator(emulated, 1), end_of_operator(emulated, 6)
    one_run = (
        BEGIN
        + OUTSIDE
        + "nop\n" * 3
        + first
        + "strb r0, [r5, #1]\n"
        + OUTSIDE
        + second
        + "nop\n"
        + END
    )
    elsewhere = first + OUTSIDE + second
    unfinished = BEGIN + "nop\n" * 50 + OUTSIDE
    found = traced(emulated, one_run + elsewhere + unfinished + one_run + elsewhere, tmp_path).trace
    sizes = [(s.run, s.operator, s.instructions) for s in found.sections]
    once = [(None, 1), (1, 4), (None, 2), (6, 1), (None, 2)]
    assert sizes == [(run, operator, size) for run in (0, 1) for operator, size in once]
    assert found.runs == 2 and found.run(-1).sections == found.sections[5:]
    assert {i: s.instructions for i, s in found.operators().items()} == {None: 10, 1: 8, 6: 2}
    assert found.whole.instructions == 20
    with pytest.raises(InputError, match="2 runs"):
        found.run(2)


DATA = Region("data", 0x2000_1000, 0x4000)
OTHER = Region("other", 0x2000_5000, 0x1000)
CODE = Region("code", 0, 0x1_0000)
ACCESSES = """
  ldr r0, =table
  ldr r1, =table_end
{begin}
next:
  ldr r2, [r0], #4
  tst r2, #1
  bic r2, r2, #1
  ite ne
store:
  strne r3, [r2]
load:
  ldreq r3, [r2]
  cmp r0, r1
  bne next
{end}
"""


@dataclass
class PythonCache:
    """A cache, simulated again: each set is a list of (line, written), the next to leave first.

    `held`: the sectors of each line that were brought in since it came.
    """

    made: Cache
    sets: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    held: dict[int, set[int]] = field(default_factory=dict)
    turn: dict[int, int] = field(default_factory=dict)
    random: int = 2463534242
    traffic: Traffic = field(default_factory=Traffic)

    def _leaving(self, number: int, lines: list[tuple[int, bool]]) -> int:
        if self.made.replacement == "lru":
            return 0
        if self.made.replacement == "round robin":
            self.turn[number] = self.turn.get(number, -1) + 1
            return self.turn[number] % self.made.ways
        for shift in (13, -17, 5):
            moved = self.random << shift if shift > 0 else self.random >> -shift
            self.random = (self.random ^ moved) & 0xFFFF_FFFF
        return self.random % self.made.ways

    def access(self, address: int, store: bool) -> None:
        line = address // self.made.line_bytes
        number = line % self.made.sets
        lines = self.sets.setdefault(number, [])
        seen = [kept for kept, _ in lines]
        sector, pushed_out = address // self.made.filled_bytes, False
        missed = line not in seen or sector not in self.held[line]
        dirty = store and self.made.write_back
        if line not in seen:
            self.held[line] = set()
        if not store or self.made.write_back:
            self.held[line].add(sector)
        if line in seen:
            at = seen.index(line)
            entry = (line, lines[at][1] or dirty)
            if self.made.replacement == "lru":
                lines.append(entry)
                del lines[at]
            else:
                lines[at] = entry
        elif not store or self.made.write_back:
            if len(lines) < self.made.ways:
                lines.append((line, dirty))
            else:
                at = self._leaving(number, lines)
                pushed_out = lines[at][1]
                if self.made.replacement == "lru":
                    del lines[at]
                    lines.append((line, dirty))
                else:
                    lines[at] = (line, dirty)
        self.traffic += Traffic(
            int(not store), int(store), int(missed and not store), int(missed and store), pushed_out
        )


def data_cache(
    line: int, ways: int, sets: int, how: Replacement = "lru", back: bool = True, sector: int = 0
) -> Cache:
    return Cache("D", frozenset({"data"}), ("data",), line, ways, sets, how, back, sector)


def accessed(
    emulated: Board, cache: Cache, accesses: Sequence[tuple[int, bool]], folder: Path
) -> Traffic:
    """What the plugin says of loads and stores (True) at offsets in the region of data."""
    words = [f"  .word {DATA.origin + offset + store}\n" for offset, store in accesses]
    after = "  .balign 4\ntable:\n" + "".join(words) + "table_end:\n"
    memory = MemorySystem((DATA, OTHER, CODE), (cache,))
    found = traced(emulated, ACCESSES.format(begin=BEGIN, end=END), folder, memory, after)
    total = Traffic()
    for counts in found.trace.whole.counts.values():
        total += counts.traffic.get("data", Traffic())
    at_label = [found.trace.whole.counts[found.labels[name]] for name in ("load", "store")]
    assert [counts.executions for counts in at_label] == [len(accesses)] * 2
    assert at_label[0].traffic.get("data", Traffic()).loads == sum(not s for _, s in accesses)
    assert at_label[1].traffic.get("data", Traffic()).stores == sum(s for _, s in accesses)
    table = found.trace.whole.counts[found.labels["next"]].traffic
    assert table == {"code": Traffic(loads=len(accesses))}
    return total


def test_caches_of_known_patterns(tmp_path: Path) -> None:
    emulated = board("mps2-an386")

    def misses(cache: Cache, offsets: Sequence[int]) -> int:
        return accessed(emulated, cache, [(o, False) for o in offsets], tmp_path).load_misses

    stride = [4 * i for i in range(64)]
    assert misses(data_cache(16, 1, 64), stride) == 64 // 4
    assert misses(data_cache(32, 2, 8), stride * 2) == 8
    two, three = [0, 256] * 20, [0, 256, 512] * 20
    assert misses(data_cache(16, 1, 16), two) == 40
    assert misses(data_cache(16, 2, 16), two) == 2
    assert misses(data_cache(16, 2, 16), three) == 60
    assert misses(data_cache(16, 3, 16, "round robin"), three) == 3
    written = [(0, True), (4, True), (256, False), (256, True), (512, True), (768, False)]
    assert accessed(emulated, data_cache(16, 1, 16), written, tmp_path) == Traffic(2, 4, 2, 2, 3)
    through = data_cache(16, 1, 16, back=False)
    assert accessed(emulated, through, written, tmp_path) == Traffic(2, 4, 2, 3, 0)
    sectored = data_cache(32, 2, 1, sector=8)
    assert misses(sectored, stride) == 64 * 4 // 8
    assert misses(sectored, [0, 4, 24, 8, 0, 64, 8, 16, 128, 72]) == 1 + 1 + 1 + 1 + 1 + 1 + 1


@pytest.mark.parametrize(
    ("line", "sector", "ways", "sets", "how", "back"),
    [
        (16, 0, 8, 1, "lru", False),
        (32, 0, 4, 2, "random", True),
        (8, 0, 2, 32, "lru", True),
        (16, 0, 4, 8, "round robin", True),
        (32, 0, 1, 24, "random", False),
        (32, 8, 8, 1, "lru", False),
        (64, 4, 8, 4, "round robin", True),
    ],
)
def test_caches_of_random_accesses(
    line: int, sector: int, ways: int, sets: int, how: Replacement, back: bool, tmp_path: Path
) -> None:
    chance = random.Random(f"{line} {sector} {ways} {sets} {how} {back}")
    near = [chance.randrange(0, DATA.size_bytes, 4) for _ in range(12)]
    accesses = [
        (
            min(chance.choice(near) + 4 * chance.randrange(24), DATA.size_bytes - 4),
            chance.random() < 0.4,
        )
        for _ in range(1500)
    ]
    cache = data_cache(line, ways, sets, how, back, sector)
    other = PythonCache(cache)
    for offset, store in accesses:
        other.access(DATA.origin + offset, store)
    found = accessed(board("mps2-an386"), cache, accesses, tmp_path)
    assert found == other.traffic
    assert 100 < found.load_misses + found.store_misses < 1400


def test_words_count_once_however_an_emulator_cuts_accesses(tmp_path: Path) -> None:
    body = f"""
      ldr r0, ={DATA.origin}
      mov r9, #2
    {BEGIN}
    again:
    bytes: ldrb r1, [r0, #1]
    doubles: ldrd r1, r2, [r0, #8]
    many: ldm r0, {{r1, r2, r3}}
    unaligned: ldr r1, [r0, #6]
    vector: vldrw.u32 q0, [r0]
    widened: vldrb.s32 q0, [r0]
    stored: vstrb.8 q0, [r0, #16]
      subs r9, #1
      bne again
    {END}
    """
    memory = MemorySystem((DATA,), (data_cache(8, 64, 1),))
    found = traced(board("mps3-an547"), body, tmp_path, memory)
    counts = found.trace.whole.counts
    words = {
        name: traffic.loads + traffic.stores
        for name in ("bytes", "doubles", "many", "unaligned", "vector", "widened", "stored")
        for traffic in (counts[found.labels[name]].traffic["data"],)
    }
    expected = {
        "bytes": 1,
        "doubles": 2,
        "many": 3,
        "unaligned": 2,
        "vector": 4,
        "widened": 1,
        "stored": 4,
    }
    assert words == {name: 2 * count for name, count in expected.items()}
    missed = {
        name: counts[found.labels[name]].traffic["data"] for name in ("bytes", "doubles", "stored")
    }
    assert [t.load_misses + t.store_misses for t in missed.values()] == [1, 1, 2]


FOUR_LINES = f"""
  mov r1, #5
{BEGIN}
  b before
  .balign 16
before:
  .rept 6
  nop
  .endr
  cmp r1, #0
  beq before            // never: what follows begins a block that was not jumped to
head:
  .rept 3
  .rept 8
  nop
  .endr
  .endr
last_line:
  .rept 5
  nop
  .endr
  subs r1, #1
  bne.w head
{END}
"""


@pytest.mark.parametrize(
    ("held", "line", "sets", "jumps", "sequential"),
    [
        (("instructions",), 16, 8, 0, 4),
        (("data", "instructions"), 16, 8, 0, 4),
        (("instructions",), 16, 2, 4, 16),
        (("instructions",), 16, 3, 4, 8),
        (("instructions",), 64, 2, 0, 4),
    ],
)
def test_lines_of_instructions(
    emulated: Board,
    held: Sequence[Cached],
    line: int,
    sets: int,
    jumps: int,
    sequential: int,
    tmp_path: Path,
) -> None:
    """Of a loop of four lines that runs five times. In three sets, its first and last line meet.
    Four sectors of a line miss as four lines do."""
    cache = Cache("I", frozenset(held), ("code",), line, 1, sets, sector_bytes=16)
    found = traced(emulated, FOUR_LINES, tmp_path, MemorySystem((CODE,), (cache,)))
    head, last = found.labels["head"], found.labels["last_line"]
    assert (head % 16, last - head) == (0, 48)
    inside = {at: c for at, c in found.trace.whole.counts.items() if head <= at < head + 64}
    assert sum(c.jump_misses for c in inside.values()) == jumps == inside[head].jump_misses
    assert sum(c.sequential_misses for c in inside.values()) == sequential
    assert {at % 16 for at, c in inside.items() if c.sequential_misses} == {0}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced") / "digits"
    assert run(["compile", str(MODEL), "-b", "mps2-an386", "-o", str(folder)]) == 0
    return folder


def test_a_model_counts_as_its_own_counter_does(digits: Path) -> None:
    """Apart from the hooks, which the firmware takes off its counts."""
    ram = Region("ram", 0x2000_0000, 0x40_0000)
    with open_board(digits, trace=MemorySystem((CODE, ram))) as session:
        assert session.trace().sections == ()
        runs = [session.run_pattern(seed) for seed in (1, 1, 2)]
        operators = session.operator_counts()
        found = session.trace()
    assert found.runs == 3
    assert found.run(0).whole.counts == found.run(1).whole.counts
    last = found.run(-1)
    whole, parts = last.whole, last.operators()
    counts = whole.counts
    hooks = {parts[i].instructions - operator.count for i, operator in enumerate(operators)}
    assert min(hooks) > 0 and max(hooks) - min(hooks) <= 1 and max(hooks) < 30
    outside = whole.instructions - runs[-1].count
    assert 0 < outside < 80 * (len(operators) + 1)
    fell = {at + c.size_bytes: c.executions - c.taken for at, c in counts.items()}
    jumped_to = {at: c.executions - fell.get(at, 0) for at, c in counts.items()}
    assert min(jumped_to.values()) == 0
    missing = sum(times for at, times in fell.items() if at not in counts)
    assert missing <= 1, "what falls through is executed next, but for the end of the run"
    traffic = [c.traffic["ram"] for c in counts.values() if "ram" in c.traffic]
    moved = sum(t.loads + t.stores for t in traffic)
    assert 0.1 * runs[-1].count < moved < runs[-1].count


def test_what_cannot_be_traced_says_why(digits: Path, tmp_path: Path) -> None:
    with open_board(digits) as session, pytest.raises(InputError, match="not traced"):
        session.trace()
    with pytest.raises(InputError, match="only an emulated board"):
        open_board(digits, "/dev/null", trace=MemorySystem())
    other = tmp_path / "other.elf"
    subprocess.run(
        [
            "arm-none-eabi-objcopy",
            "-N",
            "thimble_run_ends",
            str(digits / "firmware.elf"),
            str(other),
        ],
        check=True,
    )
    with pytest.raises(InputError, match="compile it again"):
        trace_plugin.marks(board("mps2-an386"), other)
    bad = MemorySystem((CODE,), (Cache("I", frozenset({"instructions"}), ("code",), 0, 1, 1),))
    with pytest.raises(LinkError, match="cannot use the argument cache=instructions:0:0:1:1"):
        open_board(digits, trace=bad)


def test_without_a_compiler_or_an_emulator_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(trace_plugin.unavailable.cache_clear)
    trace_plugin.unavailable.cache_clear()
    assert trace_plugin.unavailable() == ""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = {
        "qemu-system-arm": "echo no plugins here >&2; exit 1",
        "gcc": "echo broken >&2; exit 1",
    }
    for name, script in names.items():
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)

    def told() -> str:
        trace_plugin.unavailable.cache_clear()
        return trace_plugin.unavailable()

    gcc = shutil.which("gcc")
    assert gcc is not None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert told() == "gcc failed: broken"
    with pytest.raises(BuildError, match="broken"):
        trace_plugin.build()
    assert not list((tmp_path / "thimble" / "qemu").iterdir())
    (tmp_path / "gcc").unlink()
    assert told().startswith("gcc is not installed; run: apt-get")
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(gcc).parent}:/usr/bin:/bin")
    assert told().endswith("takes no plugin: no plugins here")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "qemu-system-arm").unlink()
    assert told().startswith("qemu-system-arm is not installed")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(MissingToolError, match=r"cannot keep QEMU's plugin in .*: Not a directory"):
        trace_plugin.build()
