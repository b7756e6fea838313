"""`schema.json` against the schema in LiteRT's package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "renew_tflite_schema.py"


def test_the_schema_is_that_of_litert() -> None:
    subprocess.run([sys.executable, SCRIPT], check=True)
