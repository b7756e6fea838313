"""What a benchmark found, as JSON: the option `--json` of every benchmark that has figures."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any


def json_option(parser: argparse.ArgumentParser, metavar: str = "FILE") -> None:
    """`--json FILE`, None where it is not given."""
    parser.add_argument("--json", type=Path, metavar=metavar, help="also write the figures there")


def write_results(file: Path | None, found: object) -> None:
    """Write what was found, if a file is asked for: values of JSON, dataclasses as objects. The
    file is there whole or not at all.
    """
    if file is None:
        return
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text(json.dumps(found, indent=1, default=_plain) + "\n", encoding="utf-8")
    fresh.replace(file)


def _plain(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is no value of JSON")
