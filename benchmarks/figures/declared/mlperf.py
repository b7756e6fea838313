"""MLPerf Tiny's models: RAM, flash and modelled cycles beside what others published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.copies import CHIPS
from benchmarks.figures.figure import Figure
from benchmarks.figures.markdown import beside, millions, short, table, three
from benchmarks.figures.rooms import PLANS, VERIFIED
from benchmarks.firmware import TFLM, published
from benchmarks.silicon import PUBLISHED, read_published

MODELS = {
    "mlperf_tiny_ic_resnet8_int8": "image classification (ResNet8)",
    "mlperf_tiny_kws_dscnn_int8": "keyword spotting (DS-CNN)",
    "mlperf_tiny_vww_mbv1_025_96_int8": "visual wake words (MobileNetV1)",
    "mlperf_tiny_ad_fcae_int8": "anomaly detection (autoencoder)",
}
L4, U5, H7, M55 = "nucleo-l4r5zi", "stm32u575", "nucleo-h7a3zi-q", "mps3-an547"
BOARDS = {
    L4: f"mps2-an386:{L4}",
    U5: f"mps2-an505:{U5}",
    H7: f"mps2-an500:{H7}",
    M55: M55,
}
HEADINGS = {
    L4: f"{L4}, 120 MHz",
    U5: f"{U5}, 160 MHz",
    H7: f"{H7}, 280 MHz",
    M55: "M55, 32 MHz",
}
G0, M3 = "stm32g0b1", "mps2-an385"


def commands(boards: Mapping[str, str], *options: str) -> Mapping[str, str]:
    """`benchmarks.firmware` for each board, read as the chip that is its key."""
    last = " ".join(("--models {shared}/models", *options))
    return {chip: f"firmware --board {board} --as {chip} {last}" for chip, board in boards.items()}


def by_model(data: Any) -> Mapping[str, Mapping[str, Any]]:
    """The rows of each chip by model, of the four models alone."""
    return {
        chip: {r["model"]: r for r in rows if r["model"] in MODELS} for chip, rows in data.items()
    }


def cycles(row: Any, chip: str) -> str:
    """Million cycles, and the milliseconds in brackets."""
    return f"{millions(row['cycles'][chip])} ({three(row['milliseconds'][chip])} ms)"


def times(data: Any) -> str:
    rows = by_model(data)
    lines = (
        [
            short(model),
            *(cycles(rows[chip][model], chip) for chip in HEADINGS),
            *_bytes(rows, model),
        ]
        for model in MODELS
    )
    return table(["model", *HEADINGS.values(), "arena B (L4R5)", "flash B (L4R5)"], lines)


def _bytes(rows: Mapping[str, Mapping[str, Any]], model: str) -> tuple[str, str]:
    row = rows[L4][model]
    return f"{row['arena_bytes']:,}", f"{row['flash_bytes']:,}"


def quickest(data: Any) -> str:
    """With --optimise speed."""
    rows = by_model(data)
    lines = (
        [
            short(model),
            *(cycles(rows[chip][model], chip) for chip in (L4, U5, H7)),
            f"{rows[L4][model]['arena_bytes']:,}",
            f"{rows[L4][model]['ram_bytes']:,}",
        ]
        for model in MODELS
    )
    return table(["model", L4, U5, H7, "arena B (L4R5)", "RAM B (L4R5)"], lines)


def of_others(data: Any) -> str:
    """The least cycles that were published for each chip, and ours by them."""
    rows = by_model(data)
    lines = []
    for chip in (L4, U5, H7):
        cells = []
        for model in MODELS:
            software, least = published(model, chip)[0]
            ratio = rows[chip][model]["cycles"][chip] / 1e6 / least
            cells.append(f"{three(least)} ({software}): {ratio:.2f}")
        lines.append([chip, *cells])
    return table(["chip", *(short(model) for model in MODELS)], lines)


def _measured(model: str, begins: str) -> float:
    """Million cycles on the L4R5 of the software whose name begins so."""
    names, rows = read_published(PUBLISHED)
    return next(
        row.cycles[name]
        for row in rows
        for name in row.cycles
        if names[name] == model and row.target == L4 and row.software.startswith(begins)
    )


def readme(data: Any) -> str:
    rows = by_model(data)[L4]
    heading = "M cycles: ours / TFLM / ST"
    lines = [
        [
            title,
            f"{rows[model]['arena_bytes']:,} / {TFLM[model].arena_bytes:,}",
            f"{rows[model]['ram_bytes']:,}",
            f"{rows[model]['flash_bytes']:,} / {TFLM[model].flash_bytes:,}",
            f"{millions(rows[model]['cycles'][L4])} / {three(_measured(model, 'TFLM'))} / "
            f"{three(_measured(model, 'ST'))}",
            "0" if rows[model]["matches"] else "some",
        ]
        for model, title in MODELS.items()
    ]
    memory = ["arena: ours / TFLM", "RAM with copies: ours", "flash: ours / TFLM"]
    return table(["STM32L4R5, 120 MHz", *memory, heading, "bytes that differ"], lines)


def small(data: Any) -> str:
    """M0+ and M3, beside CMSIS-NN's plain C and HALE on silicon."""
    rows = by_model(data)
    lines = []
    for model in MODELS:
        g0, m3 = rows[G0][model], rows[M3][model]
        ours, hale = g0["cycles"][G0], published(model, G0)[0][1]
        lines.append(
            [
                short(model),
                cycles(g0, G0),
                millions(g0["cmsis_nn_cycles"][G0]),
                three(hale),
                f"{ours / 1e6 / hale:.2f}",
                millions(m3["cycles"][M3]),
                f"{g0['arena_bytes']:,}",
                f"{g0['flash_bytes']:,}",
            ]
        )
    headings = ["model", "G0B1: ours", "CMSIS-NN", "HALE, measured", "ours / HALE", "M3: ours"]
    return table([*headings, "arena B", "flash B (M0+)"], lines)


def whole(data: Any) -> str:
    """All anchored models, operators whole, beside TFLM."""
    lines = []
    for row in data["rows"]:
        peer = TFLM[row["model"]]
        lines.append(
            [
                short(row["model"]),
                beside(row["arena_bytes"], peer.arena_bytes),
                f"{row['ram_bytes']:,}",
                beside(row["code_bytes"], peer.code_bytes),
                beside(row["flash_bytes"], peer.flash_bytes),
                beside(row["instructions"] / 1e6, peer.m4_minstr, ".3f"),
                "0" if row["matches"] else "some",
            ]
        )
    headings = ["model", "arena B", "all RAM B", "code B", "flash B", "M instructions"]
    return table([*headings, "bytes that differ"], lines)


def copied(data: Any) -> str:
    """Million cycles of each way to hold constants, chip by chip."""
    found = {(r["model"], r["way"], r["chip"]): r for rows in data.values() for r in rows}
    names = dict.fromkeys((model, way) for model, way, _ in found)
    rows = (
        [short(model), way, *(millions(found[model, way, chip]["cycles"]) for chip in CHIPS)]
        for model, way in names
    )
    return table(["model", "constants", *CHIPS], rows, left=2)


def _planned(data: Any) -> Mapping[str, Mapping[str, Any]]:
    """The rows of `benchmarks.optimise` by model and way."""
    found: dict[str, dict[str, Any]] = {}
    for row in data["rows"]:
        found.setdefault(row["model"], {})[row["way"]] = row
    return found


def least_code(data: Any) -> str:
    """Code and million cycles, by default and with the least code."""
    rows = (
        [
            short(model),
            *(f"{way['code_bytes']:,}" for way in (ways["default"], ways["--optimise size"])),
            *(millions(ways[name]["cycles"]) for name in ("in flash", "--optimise size")),
        ]
        for model, ways in _planned(data).items()
    )
    headings = ["code B: default", "`--optimise size`", "M cycles: `--no-copies`"]
    return table(["model", *headings, "`--optimise size`"], rows)


def copied_by_default(data: Any) -> str:
    """Million cycles without copies and with them, and the RAM that they take."""
    rows = (
        [
            short(model),
            *(millions(ways[name]["cycles"]) for name in ("in flash", "default")),
            f"{ways['default']['copied_bytes']:,}",
        ]
        for model, ways in _planned(data).items()
    )
    return table(["model", "M cycles without copies", "default", "RAM of copies B"], rows)


def peers(data: Any) -> str:
    """Each engine beside ours, all read by one model of the core."""
    rows: dict[str, dict[str, Any]] = {}
    for row in data["rows"]:
        rows.setdefault(row["model"], {})[row["engine"]] = row
    return table(
        [
            "model",
            "arena B: ours / TFLM",
            "code B",
            "flash B",
            "M cycles",
            "differing B: ours, TFLM",
        ],
        (
            [
                short(model),
                *(
                    beside(ours[f"{name}_bytes"], theirs[f"{name}_bytes"])
                    for name in ("arena", "code", "flash")
                ),
                beside(ours["cycles"] / 1e6, theirs["cycles"] / 1e6, ".3f"),
                f"{ours['differing']}, {theirs['differing']}",
            ]
            for model, (ours, theirs) in ((name, each.values()) for name, each in rows.items())
        ),
    )


def values(data: Any) -> Mapping[str, str]:
    rows = by_model(data)
    ratios = [
        (rows[chip][model]["cycles"][chip] / 1e6 / published(model, chip)[0][1], short(model), chip)
        for chip in (L4, U5, H7)
        for model in MODELS
    ]
    slower = [f"{model} on the {chip}" for ratio, model, chip in ratios if ratio > 1]
    return {"slower": ", ".join(slower) or "none"}


FIGURES = (
    Figure(
        "mlperf",
        commands(BOARDS, "--no-cmsis-nn"),
        VERIFIED,
        1.5,
        tables={"readme": readme, "time": times, "published": of_others},
        values=values,
    ),
    Figure(
        "mlperf-speed",
        commands({chip: BOARDS[chip] for chip in (L4, U5, H7)}, "--no-cmsis-nn --optimise speed"),
        VERIFIED,
        1.5,
        tables={"time": quickest},
    ),
    Figure(
        "mlperf-small-cores",
        commands({G0: "mps2-an385-v6m", M3: M3}),
        VERIFIED,
        2,
        tables={"time": small},
    ),
    Figure(
        "copies",
        {chip: f"copies --models {{shared}}/models --chips {chip}" for chip in CHIPS},
        VERIFIED,
        4,
        tables={"all": copied},
    ),
    Figure(
        "optimise",
        {"rows": "optimise --models {shared}/models"},
        PLANS,
        1,
        tables={"code": least_code, "copies": copied_by_default},
    ),
    Figure(
        "firmware-m4",
        {"rows": "firmware --all --no-split --no-cmsis-nn --models {shared}/models"},
        VERIFIED,
        5,
        tables={"all": whole},
        exits=(0, 1),
    ),
    Figure(
        "peers",
        {"rows": "peers --models {shared}/models --tflm {tflm}"},
        VERIFIED,
        1.5,
        tables={"all": peers},
    ),
)
