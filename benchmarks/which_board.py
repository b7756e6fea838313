"""Figures of the page "Which board runs which model", from the rows of a sweep.

    thimble sweep benchmarks/which_board.toml -o build/which_board.sqlite
    .venv/bin/python -m benchmarks.which_board build/which_board.sqlite --out docs/which-board.json

The sweep goes on where it was stopped. The second command keeps the figures of its last rows in a
small JSON file, with the day, the commit and the command, and renews the table of
docs/which-board.md. `make docs` puts the page of that file into the site; `--page FILE` writes it
alone.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figures.changes import git
from toolchain.cli.sweep import SweepFile
from toolchain.files.formats import WRITTEN_BY_HAND, versioned_toml
from toolchain.files.records import record
from toolchain.page.sweep import SweepPage, sweep_html, swept_page
from toolchain.report.sweep import SweepRow

ROOT = Path(__file__).resolve().parents[1]
SWEEP = ROOT / "benchmarks" / "which_board.toml"
KEPT = ROOT / "docs" / "which-board.json"
SMALLEST = ("--page {scratch}/page.html",)
_FIGURES = ("arena_bytes", "ram_bytes", "flash_bytes", "milliseconds")
_PAGE = KEPT.with_suffix(".md")
_MARKS = ("<!-- the table: python -m benchmarks.which_board -->\n", "<!-- its end -->\n")
_COLUMNS = {
    "mlperf_tiny_kws_dscnn_int8.tflite": "DS-CNN",
    "mlperf_tiny_ad_fcae_int8.tflite": "autoencoder",
    "mlperf_tiny_vww_mbv1_025_96_int8.tflite": "MobileNetV1",
    "mlperf_tiny_ic_resnet8_int8.tflite": "ResNet8",
}
"""Models of the table: MLPerf Tiny's."""
_DIGITS = 4
"""Of milliseconds: they are predictions."""


def kept(rows: Path, groups: SweepFile, commit: str) -> dict[str, Any]:
    """The figures of a sweep's last rows: for each model one entry for each board."""
    connection = sqlite3.connect(f"file:{rows}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    found = connection.execute("SELECT * FROM latest ORDER BY place").fetchall()
    command, begun, listed = connection.execute(
        "SELECT command, begun_at, count(*) FROM sweep JOIN listed ON sweep = id "
        "GROUP BY id ORDER BY id DESC"
    ).fetchone()
    connection.close()
    if not found:
        raise SystemExit(f"{rows} has no rows: run its sweep first")
    models: dict[str, dict[str, Any]] = {}
    for row in found:
        file = Path(row["file"])
        model = models.setdefault(
            file.name, {"group": groups.group_of(file), "macs": None, "boards": {}}
        )
        model["macs"] = model["macs"] or row["macs"]
        figures = [row[name] for name in _FIGURES]
        if figures[-1] is not None:
            figures[-1] = float(f"{figures[-1]:.{_DIGITS}g}")
        model["boards"][row["board"]] = [*figures, row["error_kind"]]
    return {
        "made": datetime.fromtimestamp(begun, UTC).date().isoformat(),
        "commit": commit,
        "command": command,
        "options": json.loads(found[0]["options"]),
        "basis": found[0]["basis"],
        "missing": listed - len(found),
        "figures": [*_FIGURES, "why it does not fit"],
        "models": models,
    }


def as_text(data: Mapping[str, Any]) -> str:
    """JSON with a line for each model and board."""
    head = {name: value for name, value in data.items() if name != "models"}
    models = []
    for name, model in data["models"].items():
        boards = ",\n".join(
            f"   {json.dumps(board)}: {json.dumps(figures)}"
            for board, figures in model["boards"].items()
        )
        rest = json.dumps({key: model[key] for key in ("group", "macs")})[1:-1]
        models.append(f'  {json.dumps(name)}: {{{rest}, "boards": {{\n{boards}}}}}')
    return json.dumps(head)[:-1] + ', "models": {\n' + ",\n".join(models) + "\n}}\n"


def with_table(text: str, data: Mapping[str, Any]) -> str:
    """The page in Markdown with the table of `data` between its marks."""
    before, mark, rest = text.partition(_MARKS[0])
    _, end, after = rest.partition(_MARKS[1])
    return before + mark + "\n" + table(data) + "\n" + end + after


def table(data: Mapping[str, Any]) -> str:
    """A row for each board: how many models fit, and milliseconds of some."""
    models = data["models"]
    chosen = {file: name for file, name in _COLUMNS.items() if file in models}
    swept = page(data)
    lines = [
        f"{data['made']}, commit {data['commit']}. Milliseconds of an inference are "
        f"{data['basis']}; -: does not fit.\n",
        f"| board | core | RAM | flash | fit, of {len(models)} | {' | '.join(chosen.values())} |",
        "|---" * (5 + len(chosen)) + "|",
    ]
    for board in swept.boards:
        cells = [
            board.name,
            f"{_core(board.core)}, {board.clock_hz / 1e6:.0f} MHz",
            *(f"{size / 1024:,.0f} KiB" for size in (board.ram_bytes, board.flash_bytes)),
            str(board.fitting),
            *(_time(models[file]["boards"].get(board.name)) for file in chosen),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _core(name: str) -> str:
    """As people write it: M0+."""
    return name.removeprefix("cortex-").upper().replace("PLUS", "+")


def _time(figures: Sequence[Any] | None) -> str:
    """Of one model on one board, in a cell."""
    if figures is None or figures[-1]:
        return "-"
    return "fits" if figures[-2] is None else f"{figures[-2]:,.3g}"


def page(data: Mapping[str, Any]) -> SweepPage:
    """The page of what `kept` returned."""
    made = f"{data['made']}, commit {data['commit']}: times are {data['basis']}, nothing was run."
    rows = list(_rows(data))
    models = len({row.model for row in rows})
    boards = len({row.board for row in rows})
    return swept_page(f"{models} models on {boards} boards", data["command"], made, rows)


def _rows(data: Mapping[str, Any]) -> Iterator[SweepRow]:
    options = "".join(f" --{name} {value}" for name, value in data["options"].items())
    for file, model in data["models"].items():
        for board, (arena, ram, flash, milliseconds, kind) in model["boards"].items():
            yield SweepRow(
                name=f"plan {file} --board {board}{options}",
                suite=f"plan on {board}",
                model=Path(file).stem,
                group=model["group"],
                board=board,
                do="plan",
                options=" ".join(f"{name}={value}" for name, value in data["options"].items()),
                ok=not kind,
                cached=True,
                kind=kind,
                error="",
                arena=arena,
                ram=ram,
                flash=flash,
                milliseconds=milliseconds,
                basis=data["basis"],
                differing=None,
                seconds=None,
                best=False,
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path, nargs="?", help="the file of the sweep")
    parser.add_argument("--out", type=Path, default=KEPT, help="the figures")
    parser.add_argument("--commit", default="", help="of the sweep; default: this checkout's")
    parser.add_argument("--page", type=Path, help="write the page of the figures")
    arguments = parser.parse_args()
    if arguments.rows is not None:
        sweep = record(SweepFile, versioned_toml(SWEEP, WRITTEN_BY_HAND), str(SWEEP))
        commit = arguments.commit or git("rev-parse", "--short=8", "HEAD")
        data = kept(arguments.rows, sweep, commit)
        arguments.out.write_text(as_text(data), encoding="utf-8")
        if arguments.out == KEPT:
            _PAGE.write_text(with_table(_PAGE.read_text(encoding="utf-8"), data), encoding="utf-8")
        print(f"{arguments.out}: {len(data['models'])} models, {data['missing']} rows are missing")
    if arguments.page is not None:
        data = json.loads(arguments.out.read_text(encoding="utf-8"))
        arguments.page.write_text(sweep_html(page(data)), encoding="utf-8")
        print(arguments.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
