"""Predicted stalls: what caches lack against caches that are simulated, and clocks."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import replace

import pytest

from toolchain.boards import Cache, MemoryTiming, Target, as_target
from toolchain.cost import stalls
from toolchain.cost.stalls import CONSTANT_LINE, Events, constant_terms, lacked_share, stalls_of

FLASH = ("FLASH",)


def cache(line_bytes: int, ways: int, sets: int, replacement: str = "lru") -> Cache:
    return Cache("c", frozenset({"data"}), FLASH, line_bytes, ways, sets, replacement)  # type: ignore[arg-type]


def lacked_of(lines: int, of: Cache, passes: int = 60) -> float:
    """The share of lines read in turn that a simulated cache lacks, once it is in its stride."""
    rng = random.Random(7)
    sets: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(of.sets)]
    lacked = 0
    for turn in range(passes):
        for number in range(lines):
            held = sets[number % of.sets]
            if number in held:
                held.move_to_end(number)
                continue
            lacked += turn >= passes // 2
            if len(held) == of.ways:
                gone = rng.choice(list(held)) if of.replacement == "random" else next(iter(held))
                del held[gone]
            held[number] = None
    return lacked / lines / (passes - passes // 2)


@pytest.mark.parametrize("of", [cache(16, 2, 256), cache(32, 4, 32), cache(32, 16, 1)])
@pytest.mark.parametrize("share", [0.5, 1.0, 1.0625, 1.25, 1.5, 3.0])
def test_lines_lacked_in_a_cache_that_drops_the_oldest(of: Cache, share: float) -> None:
    lines = round(share * of.ways * of.sets)
    assert lacked_share(share, of) == pytest.approx(lacked_of(lines, of), abs=0.02)


@pytest.mark.parametrize("share", [0.8, 1.1, 1.5, 2.0, 4.0])
def test_lines_lacked_in_a_cache_that_drops_at_random(share: float) -> None:
    """One set of many ways is what the formula is for; four ways are near to it."""
    wide, narrow = cache(32, 128, 1, "random"), cache(32, 4, 128, "random")
    assert lacked_share(share, wide) == pytest.approx(lacked_of(round(share * 128), wide), abs=0.02)
    assert lacked_share(share, narrow) == pytest.approx(
        lacked_of(round(share * 512), narrow), abs=0.15
    )


def test_constants_that_a_cache_holds_are_fetched_once_or_never() -> None:
    of, loops = cache(32, 4, 128), {"call": 1.0, "block": 50.0}
    assert constant_terms(loops, 4096, 4096, of) == {"call": 0.0, "block": 0.0, CONSTANT_LINE: 0.0}
    once = constant_terms(loops, 4096, 10**6, of)
    assert once == {"call": 1.0, "block": 0.0, CONSTANT_LINE: pytest.approx(128)}
    streamed = constant_terms(loops, 10**5, 10**6, of)
    assert streamed["block"] == 50.0 and streamed[CONSTANT_LINE] == 0.0
    small = cache(32, 8, 1)
    assert constant_terms(loops, 4096, 4096, small) == {**loops, CONSTANT_LINE: 0.0}
    held = constant_terms(loops, 224, 224, small)
    assert held == {"call": 1.0, "block": 0.0, CONSTANT_LINE: 7.0}
    assert constant_terms(loops, 0, 0, small) == loops


def target(clock: int, timing: MemoryTiming, name: str = "stm32f405") -> Target:
    chip = as_target(name)
    memories = tuple(replace(m, timing=timing) if m.name in FLASH else m for m in chip.memories)
    return replace(chip, clock_hz=clock, memories=memories)


def test_a_line_costs_what_the_memory_takes_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events({"call": 10.0}, {"call": 4.0}, {"block": 2.0}, 6.0, 7.0)
    monkeypatch.setattr(stalls, "_nearest", lambda code, constants: {"kernel": events})

    def cycles(timing: MemoryTiming) -> float:
        found = stalls_of(target(1, timing))
        assert found is not None
        return found.cycles("kernel", {"call": 1.0, "block": 3.0}, 10**5, 10**5)

    assert cycles(MemoryTiming(5, 32)) == (10 + 6) * 5 + 4 * 2  # four words are fetched ahead
    assert cycles(MemoryTiming(5, 8)) == (10 + 6) * 5 + 4 * 2
    assert cycles(MemoryTiming(5, 4, burst_cycles=5)) == (10 + 4) * (20 - 6) + 6 * 20
    assert cycles(MemoryTiming(9, 32, prefetch=True)) == (10 + 6) * 9 + 4 * 3
    assert cycles(MemoryTiming(5, 32, prefetch=True)) == (10 + 6) * 5
    assert stalls_of(target(1, MemoryTiming(0, 32))) is None


def test_caches_that_were_not_fitted_take_those_of_the_most_alike() -> None:
    def nearest(*words: str) -> str:
        caches = [Cache(w, frozenset({"data"}), FLASH, *map(int, w.split("x"))) for w in words]  # type: ignore[arg-type]
        return stalls.nearest_geometry(stalls.geometry(caches[0], caches[-1]))

    assert nearest("16x64x1", "16x8x1") == "caches-16x64x1-16x8x1"
    assert nearest("32x2x128", "32x4x64") == "caches-32x2x256-32x4x128"
    assert nearest("8x128x1", "8x32x1") == "caches-8x128x1-8x32x1"
    assert nearest("4x256x1", "4x64x1") == "caches-8x128x1-8x32x1"
    chip = as_target("stm32l4r5")
    halved = replace(chip, caches=tuple(replace(c, sector_bytes=4) for c in chip.caches))
    fitted, shorter = stalls_of(chip), stalls_of(halved)
    assert fitted is not None and shorter is not None
    assert (fitted.constants.cache.filled_bytes, shorter.constants.cache.filled_bytes) == (8, 4)
    ours, theirs = (s.kernels["thimble_convolve_s8"].constants for s in (shorter, fitted))
    assert ours == {name: pytest.approx(2 * each) for name, each in theirs.items()}
    assert nearest("16x2x512") == "caches-16x2x256"
    assert nearest("32x4x128") == "caches-16x2x256"
