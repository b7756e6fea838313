"""What mutations start from: our own samples of every operator, small networks, real models.

A seed's name brings the same bytes every time. Models beside the checkout (`../shared/models`) take
part where they are there; other cases stay the same without them.
"""

from __future__ import annotations

import contextlib
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from benchmarks._cases import int4_constants, sample
from tests.host_c.test_identity_rewriting import cell
from tests.pure.test_onnx_operators import CASES, FORMS
from tests.support import random_networks, split_graphs
from tests.support.mutations import frozen
from tests.support.onnx_models import quantised, surrounded
from tests.support.random_graphs import random_movement_graph
from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import Graph
from toolchain.ops import forms
from toolchain.ops.check import check

ROOT = Path(__file__).resolve().parents[2]
TFLITE, ONNX = ".tflite", ".onnx"
_SAMPLES = 8
"""Of each operator kind."""
_NETWORKS = 48
_LARGEST_MODEL_BYTES = 120_000
_KEPT = 2000
_SHARES = (("operator", 0.58), ("onnx", 0.2), ("network", 0.14), ("file", 0.04), ("model", 0.04))


@dataclass(frozen=True)
class Seed:
    """A sound file. `model`: a TFLite file's fields, as `mutations.thawed` takes them."""

    name: str
    suffix: str
    data: bytes
    model: bytes | None


def seed_name(rng: random.Random) -> str:
    """One seed, of whichever family."""
    (family,) = rng.choices([name for name, _ in _SHARES], [share for _, share in _SHARES])
    names = _names()[family]
    return rng.choice(names if names else _names()["operator"])


@cache
def _names() -> dict[str, tuple[str, ...]]:
    kinds = [kind for kind, spec in forms().items() if spec.tflite is not None]
    models = sorted((ROOT.parent / "shared" / "models").glob("*"))
    files = [
        *sorted((ROOT / "tests" / "ecosystem").glob("*")),
        *(ROOT / "examples").rglob("*.tflite"),
    ]
    small = [path for path in models if path.suffix in (TFLITE, ONNX)]
    return {
        "operator": tuple(f"operator/{kind}/{i}" for kind in kinds for i in range(_SAMPLES)),
        "onnx": tuple(
            f"onnx/{case}/{form}" for case in CASES for form in (*FORMS, "pairs", "float")
        ),
        "network": tuple(f"network/{i}" for i in range(_NETWORKS)),
        "file": tuple(f"file/{path.relative_to(ROOT).as_posix()}" for path in sorted(files)),
        "model": tuple(
            f"model/{path.name}" for path in small if path.stat().st_size < _LARGEST_MODEL_BYTES
        ),
    }


@lru_cache(_KEPT)
def seed(name: str) -> Seed:
    """The seed of a name. Raises KeyError for a family that is unknown."""
    family, rest = name.split("/", 1)
    suffix, data = _FAMILIES[family](rest)
    return Seed(name, suffix, data, frozen(data) if suffix == TFLITE else None)


def _operator(rest: str) -> tuple[str, bytes]:
    kind, index = rest.split("/")
    graph, _ = sample(kind, int(index), 0)
    return TFLITE, tflite_bytes(graph, int4_constants(kind, graph))


def _onnx(rest: str) -> tuple[str, bytes]:
    """As onnxruntime quantises it; with pairs around every operator; or in float."""
    case, form = rest.split("/")
    model = CASES[case]()
    if form == "float":
        return ONNX, bytes(model.SerializeToString())
    return ONNX, surrounded(model) if form == "pairs" else quantised(model, *FORMS[form])


def _cell(rng: np.random.Generator) -> Graph:
    """A concatenation that convolutions read: the one that `identity_rewriting` partitions."""
    return check(cell(int(rng.integers(1 << 16)), bool(rng.integers(2))))


_MAKERS: tuple[Callable[[np.random.Generator], Graph], ...] = (
    split_graphs.random_network,
    random_movement_graph,
    random_networks.random_network,
    _cell,
)


def _network(rest: str) -> tuple[str, bytes]:
    rng = np.random.default_rng([zlib.crc32(b"network"), int(rest)])
    while True:
        with contextlib.suppress(ValueError):  # a padding that TFLite has no word for
            return TFLITE, tflite_bytes(_MAKERS[int(rest) % len(_MAKERS)](rng))


def _file(rest: str) -> tuple[str, bytes]:
    path = ROOT / rest
    return path.suffix, path.read_bytes()


def _model(rest: str) -> tuple[str, bytes]:
    path = ROOT.parent / "shared" / "models" / rest
    return path.suffix, path.read_bytes()


_FAMILIES: dict[str, Callable[[str], tuple[str, bytes]]] = {
    "operator": _operator,
    "onnx": _onnx,
    "network": _network,
    "file": _file,
    "model": _model,
}
