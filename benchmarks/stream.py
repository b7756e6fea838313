"""Networks whose input arrives by rows: RAM against slowdown, beside msf-CNN's.

    python -m benchmarks.stream MODELS_DIR [--only NETWORK] [--limits LIST] [--json FILE]

MODELS_DIR holds mcunet-vww1 and mcunet-in4 as TFLite files (msf-CNN has mcunet-in3, of which there
is no file here; in4 is the larger network); MobileNetV2 0.35 is built by `benchmarks.zoo_mobile`.
`stream_published.json` has msf-CNN's bytes, which leave the image out, at limits on the products.
Ours are whole arenas: rows that are waiting, all tensors, scratch and the progress of the rows, at
the same limits on predicted cycles. The factor of the products is beside.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from benchmarks.zoo_mobile import mobilenet_v2
from toolchain import passes
from toolchain.boards import board as find_board
from toolchain.frontends import load_model
from toolchain.ir import Graph
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

SMALLEST = ("{shared}/models --only mobilenet_v2_035_144 --limits 1.02 --seconds 1",)
PUBLISHED = Path(__file__).with_name("stream_published.json")
FILES = {
    "mcunet_vww1": "tinyengine_mcunet_vww_int8.tflite",
    "mcunet_in4": "gw_mcunet_512kb_2mb_imagenet_int8.tflite",
}
BUILT = "mobilenet_v2_035_144"
LIMITS = "1.01,1.1,1.3,1.5,"
NO_LIMIT = 100.0
"""As a slowdown, more than any search takes."""


def network(name: str, models: Path) -> Graph:
    """A network ready to plan."""
    if name == BUILT:
        return mobilenet_v2(name, 0.35, 144)
    return passes.prepare(load_model(models / FILES[name])).graph


def row(graph: Graph, limit: str, board: str, seconds: float) -> dict[str, Any]:
    """The smallest arena found within a limit on the predicted cycles ('' for none)."""
    begin = time.process_time()
    slowdown = float(limit) - 1 if limit else NO_LIMIT
    options = PlanOptions(stream_input=True, max_slowdown=slowdown, split_seconds=seconds)
    plan = plan_graph(graph, find_board(board), options)
    whole = plan_graph(graph, find_board(board), PlanOptions().unsplit)
    takers = sum(op.kind == "input_rows" for op in plan.graph.ops)
    return {
        "limit": limit,
        "arena_bytes": plan.arena.size_bytes,
        "cycles_factor": round(1 + plan.slowdown, 4),
        "products_factor": round(plan.macs / whole.macs, 4),
        "blocks_of_rows": takers,
        "unsplit_bytes": whole.arena.size_bytes,
        "image_bytes": sum(graph.tensors[name].size_bytes for name in graph.inputs),
        "seconds": round(time.process_time() - begin, 1),
        "stopped": plan.search_stopped,
    }


def table(name: str, rows: list[dict[str, Any]], theirs: dict[str, int]) -> Table:
    whole, image = rows[0]["unsplit_bytes"], rows[0]["image_bytes"]
    found = Table(title=f"{name}: image {image:,} B, unsplit with it {whole:,} B")
    for title in ("limit", "arena", "cycles", "products", "blocks of rows", "msf-CNN", "seconds"):
        found.add_column(title, justify="right")
    for one in rows:
        other = theirs.get(one["limit"])
        found.add_row(
            f"x {one['limit']}" if one["limit"] else "none",
            f"{one['arena_bytes']:,}",
            f"x {one['cycles_factor']:.3f}",
            f"x {one['products_factor']:.3f}",
            str(one["blocks_of_rows"]),
            f"{other:,}" if other else "",
            f"{one['seconds']}",
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("--only", choices=(BUILT, *FILES))
    parser.add_argument("--limits", default=LIMITS, help="factors, by commas; empty: no limit")
    parser.add_argument("--board", default="nucleo-h743zi")
    parser.add_argument("--seconds", type=float, default=30.0, help="work of each search")
    json_option(parser)
    options = parser.parse_args()
    published = json.loads(PUBLISHED.read_text())["networks"]
    console = Console(width=120)
    result: dict[str, Any] = {}
    for name in (options.only,) if options.only else (BUILT, *FILES):
        if name in FILES and not (options.models / FILES[name]).exists():
            console.print(f"{name}: {options.models / FILES[name]} is not there")
            continue
        graph = network(name, options.models)
        limits = options.limits.split(",")
        rows = [row(graph, limit, options.board, options.seconds) for limit in limits]
        result[name] = rows
        console.print(table(name, rows, published.get(name, {})))
    write_results(options.json, result)


if __name__ == "__main__":
    main()
