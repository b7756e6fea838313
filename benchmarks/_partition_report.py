"""Tables and aims of `benchmarks.partition`, from rows as its JSON holds them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

PUBLISHED = json.loads(Path(__file__).with_name("partition_published.json").read_text("utf-8"))
OURS = "auto"
"""The splitter whose figures the aims are about."""


def at(row: Any, budget: float, splitter: str = OURS) -> Any:
    """What a splitter found within a budget."""
    return next(e for e in row["split"][splitter]["within"] if e["budget"] == budget)


def below_hmcos(row: Any, budget: float, splitter: str = OURS) -> float:
    """The share of the unsplit arena under HMCOS's order that splitting saves."""
    split: float = at(row, budget, splitter)["arena_bytes"]
    return 1 - split / float(row["unsplit"]["hmcos"]["arena_bytes"])


def published_of(name: str) -> str:
    """One line of what others reached."""
    parts = []
    if name in PUBLISHED["hmcos"]:
        parts.append(f"HMCOS {PUBLISHED['hmcos'][name]['peak_bytes'] // 4:,} (float32 / 4)")
    motes = PUBLISHED["motes"]["networks"].get(name)
    if motes is not None:
        size = f"{motes['split_bytes']:,}" if "split_bytes" in motes else ""
        share = f"{motes['share_of_hmcos']:.0%} of HMCOS" if "share_of_hmcos" in motes else ""
        parts.append(f"MOTES {size}{share} at {motes['slowdown']:.0%}")
    if name in PUBLISHED["tinyengine"]:
        entry = PUBLISHED["tinyengine"][name]
        patched = (f"{p['bytes']:,} at {p['slowdown']:.1%}" for p in entry["patched"])
        parts.append("; ".join([f"TinyEngine {entry['unsplit_bytes']:,}", *patched]))
    return "; ".join(parts) or "no published bytes"


def show_networks(rows: Sequence[Any], console: Console) -> None:
    """Unsplit under each scheduler; split by each splitter; the published figures."""
    if not rows:
        return
    unsplit = Table(title="Unsplit: bytes of the peak / of the arena")
    unsplit.add_column("network")
    unsplit.add_column("operators", justify="right")
    for method in rows[0]["unsplit"]:
        unsplit.add_column(method, justify="right")
    unsplit.add_column("published")
    for row in rows:
        found = (f"{u['peak_bytes']:,} / {u['arena_bytes']:,}" for u in row["unsplit"].values())
        name = row["network"]
        unsplit.add_row(name, str(row["operators"]), *found, published_of(name))
    console.print(unsplit)
    split = Table(title="Split: bytes of the arena, and the predicted slowdown")
    split.add_column("network")
    split.add_column("splitter")
    budgets = [e["budget"] for e in next(iter(rows[0]["split"].values()))["within"]]
    for title in (*(f"within {b:.0%}" for b in budgets), "least", "below hmcos at 5%"):
        split.add_column(title, justify="right")
    split.add_column("search, with 5% placed (s)", justify="right")
    for row in rows:
        names = list(row["split"])
        for name in names:
            found = row["split"][name]
            search = found["search"]
            placed = search["seconds"] + at(row, 0.05, name)["seconds"]
            took = f"{search['seconds']:.1f}, {placed:.0f}"
            split.add_row(
                row["network"] if name == names[0] else "",
                name,
                *(
                    f"{e['arena_bytes']:,}\n{e['slowdown']:.2%}"
                    for e in (*found["within"], found["least"])
                ),
                f"{below_hmcos(row, 0.05, name):.0%}",
                f"{took}\nstopped" if search["stopped"] else took,
                end_section=name == names[-1],
            )
    console.print(split)


def aims(rows: Sequence[Any], of_the_paper: Sequence[str]) -> Iterator[str]:
    """Each aim beside what was reached, over the paper's networks among the rows."""
    wanted = PUBLISHED["aims"]
    ours = [row for row in rows if row["network"] in of_the_paper and OURS in row["split"]]
    if not ours:
        return
    missing = [name for name in of_the_paper if name not in {row["network"] for row in ours}]
    if missing:
        yield f"Not among the rows: {', '.join(missing)}"
    for entry in ours[0]["split"][OURS]["within"]:
        budget = entry["budget"]
        saved = {
            name: mean(below_hmcos(row, budget, name) for row in ours)
            for name in ours[0]["split"]
            if all(name in row["split"] for row in ours)
        }
        also = f" (aim {wanted['below_hmcos_at_5_percent']:.0%})" if budget == 0.05 else ""
        others = "".join(f", {name} {s:.1%}" for name, s in saved.items() if name != OURS)
        yield (
            f"within {budget:.0%}: {saved[OURS]:.1%} below hmcos on average of "
            f"{len(ours)}{also}{others}"
        )
    limit = wanted["bytes_at_5_percent"]
    fit = [row["network"] for row in ours if at(row, 0.05)["arena_bytes"] <= limit]
    above = [
        f"{row['network']} ({at(row, 0.05)['arena_bytes']:,})"
        for row in ours
        if row["network"] not in fit
    ]
    rest = f"; not: {', '.join(above)}" if above else ""
    yield f"{len(fit)} of {len(ours)} within {limit:,} B at 5% (aim: all; MOTES: three){rest}"
    for row in ours:
        name = row["network"]
        if name == "nasnet_a_imagenet":
            share = 1 - below_hmcos(row, 0.01)
            aim = wanted["nasnet_a_imagenet_share_at_1_percent"]
            yield f"{name}: {share:.0%} of hmcos at 1% (aim {aim:.0%}; MOTES 60%)"
        motes = PUBLISHED["motes"]["networks"].get(name, {}).get("split_bytes")
        if motes is not None:
            size = at(row, 0.1)["arena_bytes"]
            yield f"{name}: {size:,} B at 10% (MOTES: {motes:,})"
    yield from _beside(rows)
    slowest = max(ours, key=_seconds)
    processor = slowest["split"][OURS]["search"]["processor_seconds"]
    yield (
        f"longest search, with placement within 5%: {slowest['network']}, "
        f"{_seconds(slowest):.0f} s; the search alone {processor:.0f} s of the processor "
        f"(aim {wanted['search_seconds']} s)"
    )


def _beside(rows: Sequence[Any]) -> Iterator[str]:
    """Where another splitter, implemented here, finds a smaller arena than ours."""
    others = {name for row in rows for name in row["split"] if name != OURS}
    for name in sorted(others):
        pairs = [
            (
                row["network"],
                entry["budget"],
                entry["arena_bytes"] / at(row, entry["budget"], name)["arena_bytes"],
            )
            for row in rows
            if name in row["split"] and OURS in row["split"]
            for entry in row["split"][OURS]["within"]
        ]
        worse = [
            f"{network} at {budget:.0%} ({ratio - 1:+.1%})"
            for network, budget, ratio in pairs
            if ratio > 1
        ]
        rest = f"; not: {', '.join(worse)}" if worse else ""
        yield f"{OURS} is no larger than {name} in {len(pairs) - len(worse)} of {len(pairs)}{rest}"


def _seconds(row: Any) -> float:
    found = row["split"][OURS]
    seconds: float = found["search"]["seconds"] + at(row, 0.05)["seconds"]
    return seconds
