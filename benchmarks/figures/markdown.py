"""Tables in Markdown, and how figures are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MLPERF = {
    "mlperf_tiny_ic_resnet8_int8": "ResNet8 (IC)",
    "mlperf_tiny_kws_dscnn_int8": "DS-CNN (KWS)",
    "mlperf_tiny_vww_mbv1_025_96_int8": "MobileNetV1 (VWW)",
    "mlperf_tiny_ad_fcae_int8": "autoencoder (AD)",
    "mlperf_tiny_sww_1dcnn_int8": "streaming wake word",
}


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """A table whose first `left` columns are texts and whose others are figures."""
    sides = ["---"] * left + ["---:"] * (len(headings) - left)
    lines = [headings, sides, *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def short(model: str) -> str:
    """The name of a model in a table."""
    return MLPERF.get(model, model)


def beside(ours: float, theirs: float | None, form: str = ",") -> str:
    """Ours, theirs and the ratio; ours alone where there is no other."""
    if not theirs:
        return f"{ours:{form}}"
    return f"{ours:{form}} / {theirs:{form}} ({ours / theirs:.2f})"


def three(value: float) -> str:
    """Three digits: 12.0, 4.58, 0.520; all digits before the point."""
    whole = math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{min(max(2 - whole, 0), 3)}f}"


def millions(count: float) -> str:
    """Cycles in millions."""
    return three(count / 1e6)


def or_dash(value: float | None, form: str = ",") -> str:
    return "-" if value is None else f"{value:{form}}"
