"""The networks of the splitting paper (MOTES), int8, with seeded weights.

    python -m benchmarks.zoo [--json FILE] [--only TEXT]

Built from the published definitions. Prints each network's size, and where it differs from its
definition (the paper's own files are not public). `network(name)` gives the graph. `zoo_cells.py`
holds NASNet-A, AmoebaNet-A and DARTS, `zoo_mobile.py` MobileNetV2 and FPNAS, `zoo_graphs.py`
RandWire and SwiftNet, `zoo_bert.py` BERT-Tiny. MCUNetV2-SE-Large is not built: its real file,
`tinyengine_mcunetv2_large_int8.tflite`, is public.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks import zoo_bert, zoo_cells, zoo_graphs, zoo_mobile
from benchmarks._results import json_option, write_results
from toolchain import passes
from toolchain.ir import Graph
from toolchain.ops import spec_of

SMALLEST = ("--only swiftnet_cell",)
OF_ALL = (
    "weights are seeded, one quantisation for all activations, batch normalisation folded, "
    "no dropout, no auxiliary head"
)
_CELLS = (
    "factorised reduction as two 1x1 convolutions, of which one skips the first pixel (no padding "
    "is read where sizes are even)"
)
_HMCOS = "stem of 32 filters and layout of cells as in HMCOS's script"


@dataclass(frozen=True)
class Entry:
    """`differs`: from the published definition, besides what `OF_ALL` says."""

    build: Callable[[str], Graph]
    source: str
    differs: str = ""


NETWORKS: dict[str, Entry] = {
    "nasnet_a_cifar10": Entry(
        lambda name: zoo_cells.cifar10(name, zoo_cells.NASNET_A, 6, 32),
        "Zoph et al. 2018, NASNet-A (6 @ 768)",
        f"{_HMCOS}; {_CELLS}; second reduction pair with sep 7x7 as published, HMCOS has 5x5",
    ),
    "nasnet_a_imagenet": Entry(
        lambda name: zoo_cells.imagenet(name, zoo_cells.NASNET_A, 4, 11),
        "Zoph et al. 2018, NASNet-A (4 @ 1056)",
        f"{_CELLS}; second reduction pair with sep 7x7 as published, HMCOS has 5x5",
    ),
    "darts_cifar10": Entry(
        lambda name: zoo_cells.cifar10(name, zoo_cells.DARTS_V2, 6, 36),
        "Liu et al. 2019, DARTS V2, 20 cells, 36 filters",
        f"{_HMCOS} (DARTS's own stem has 108 filters); {_CELLS}",
    ),
    "darts_imagenet": Entry(
        lambda name: zoo_cells.imagenet(name, zoo_cells.DARTS_V2, 4, 12),
        "Liu et al. 2019, DARTS V2, 48 filters",
        f"{_HMCOS} (DARTS's own has three stem convolutions and 14 cells); {_CELLS}",
    ),
    "fpnas": Entry(
        zoo_mobile.fpnas,
        "Cui et al. 2019, the authors' code",
        "channel shuffles as slices and concatenations, the permutation within each half absorbed "
        "in the next weights",
    ),
    "mobilenet_v2_224": Entry(zoo_mobile.mobilenet_v2, "Sandler et al. 2018, width 1.0"),
    "bert_tiny": Entry(
        zoo_bert.bert_tiny,
        "Turc et al. 2019, 2 layers of 128, 2 heads, 512 tokens",
        "from the summed embeddings on; heads as operators of their own, layer normalisation in "
        "int8 steps, its square root by table",
    ),
    "amoebanet_a_cifar10": Entry(
        lambda name: zoo_cells.cifar10(name, zoo_cells.AMOEBANET_A, 6, 36),
        "Real et al. 2019, AmoebaNet-A (6, 36)",
        f"{_HMCOS}; {_CELLS}; not one of the paper's eight",
    ),
    "amoebanet_a_imagenet": Entry(
        lambda name: zoo_cells.imagenet(name, zoo_cells.AMOEBANET_A, 4, 12.5),
        "Real et al. 2019, AmoebaNet-A (4, 50)",
        f"{_HMCOS}; {_CELLS}; not one of the paper's eight",
    ),
    "randwire": Entry(
        zoo_graphs.randwire,
        "Xie et al. 2019, WS(32, 4, 0.75), small regime, 78 channels",
        "one random draw of ours (theirs are unpublished); sums weigh all operands alike; three "
        "random cells as in HMCOS's script; not one of the paper's eight",
    ),
    "randwire_cell": Entry(
        zoo_graphs.randwire_one_cell,
        "the first random cell of the above, 56x56x78 in",
        "as above",
    ),
    "swiftnet_cell_a": Entry(
        lambda name: zoo_graphs.swiftnet_cell(name, "a"),
        "Cheng et al. 2019, Visual Wake Words submission",
        "kernels of plain convolutions taken as 1x1, of depthwise ones as 3x3; not one of the "
        "paper's eight",
    ),
    "swiftnet_cell_b": Entry(
        lambda name: zoo_graphs.swiftnet_cell(name, "b"), "as cell a", "as cell a"
    ),
    "swiftnet_cell_c": Entry(
        lambda name: zoo_graphs.swiftnet_cell(name, "c"), "as cell a", "as cell a"
    ),
    "nasnet_a_cropped": Entry(
        lambda name: zoo_cells.imagenet(name, zoo_cells.NASNET_A, 1, 11, 96),
        "NASNet-A, cropped: one normal cell a stage, 96x96",
        _CELLS,
    ),
    "darts_cropped": Entry(
        lambda name: zoo_cells.imagenet(name, zoo_cells.DARTS_V2, 1, 12, 96),
        "DARTS V2, cropped: one normal cell a stage, 96x96",
        _CELLS,
    ),
    "mobilenet_v2_035_160": Entry(
        lambda name: zoo_mobile.mobilenet_v2(name, 0.35, 160), "Sandler et al. 2018, width 0.35"
    ),
    "bert_tiny_128": Entry(
        lambda name: zoo_bert.bert_tiny(name, tokens=128),
        "BERT-Tiny, cropped: 128 tokens",
        "as bert_tiny",
    ),
}


def network(name: str) -> Graph:
    """The graph of one network, as a front end would give it. Raises KeyError for another name."""
    return NETWORKS[name].build(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", default="", help="networks whose name contains this")
    json_option(parser)
    rows = []
    chosen = parser.parse_args()
    for name in (name for name in NETWORKS if chosen.only in name):
        entry = NETWORKS[name]
        graph = passes.prepare(network(name)).graph
        constants = (t.size_bytes for t in graph.tensors.values() if t.is_constant)
        row = {
            "network": name,
            "operators": len(graph.ops),
            "macs": sum(spec_of(op.kind).macs(op, graph) for op in graph.ops),
            "weight_bytes": sum(constants),
            "source": entry.source,
            "differs": entry.differs,
        }
        rows.append(row)
    write_results(chosen.json, {"of_all": OF_ALL, "networks": rows})
    table = Table(title="The zoo", caption=f"All: {OF_ALL}.", show_lines=True)
    for title in ("network", "operators", "M MACs", "weights kB", "source", "differs"):
        table.add_column(title, justify="left" if title in ("source", "differs") else "right")
    for row in rows:
        table.add_row(
            str(row["network"]),
            str(row["operators"]),
            f"{int(str(row['macs'])) / 1e6:.1f}",
            f"{int(str(row['weight_bytes'])) / 1e3:,.0f}",
            str(row["source"]),
            str(row["differs"]),
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
