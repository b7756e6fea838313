"""Regions of addresses and caches over them, as QEMU's plugin simulates them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Held = Literal["instructions", "data"]
Replacement = Literal["lru", "random", "round robin"]


@dataclass(frozen=True)
class Cache:
    """A cache. `memories`: names of the regions that it covers. `write_back`: a store that misses
    brings its line in, and the line is written when it leaves; else stores go past the cache.
    """

    name: str
    holds: frozenset[Held]
    memories: tuple[str, ...]
    line_bytes: int
    ways: int
    sets: int
    replacement: Replacement = "lru"
    write_back: bool = False


@dataclass(frozen=True)
class Region:
    """Addresses whose loads and stores are counted apart."""

    name: str
    origin: int
    size_bytes: int


@dataclass(frozen=True)
class MemorySystem:
    """What lies at which addresses. Without regions, loads and stores are not counted."""

    regions: tuple[Region, ...] = ()
    caches: tuple[Cache, ...] = ()

    @property
    def region_names(self) -> tuple[str, ...]:
        return tuple(region.name for region in self.regions)

    def plugin_arguments(self) -> tuple[str, ...]:
        """The arguments of `runtime_c/qemu/instruction_counts.c` that describe it."""
        regions = (f"region={region.origin:x}:{region.size_bytes:x}" for region in self.regions)
        return (*regions, *(self._cache_argument(cache) for cache in self.caches))

    def _cache_argument(self, cache: Cache) -> str:
        covered = sum(1 << i for i, name in enumerate(self.region_names) if name in cache.memories)
        words = (
            "+".join(sorted(cache.holds)),
            str(cache.line_bytes),
            str(cache.ways),
            str(cache.sets),
            cache.replacement.replace(" ", ""),
            "back" if cache.write_back else "through",
            f"{covered:x}",
        )
        return f"cache={':'.join(words)}"
