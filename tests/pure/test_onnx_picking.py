"""GatherElements, GatherND, ScatterElements and ScatterND of ONNX, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pure.test_onnx_plain import Values, agree, file, node
from tests.support.onnx_models import prepared_of
from toolchain.errors import InputError, UnsupportedError

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)


def signed(size: int, shape: tuple[int, ...]) -> Values:
    """Places from the begin and from the end."""
    return RNG.integers(-size, size, shape)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("operator", "indices", "attributes"),
    [
        ("GatherElements", signed(4, (3, 2, 5)), {"axis": 1}),
        ("GatherElements", signed(5, (2, 3, 7)), {"axis": -1}),
        ("GatherND", signed(3, (6, 2)), {}),
        ("GatherND", signed(3, (2, 2, 3)), {}),
        ("GatherND", signed(4, (3, 6, 1)), {"batch_dims": 1}),
        ("GatherND", signed(4, (3, 2, 2)), {"batch_dims": 1}),
    ],
)
def test_gathers(
    operator: str, indices: Values, attributes: dict[str, int], *, constant: bool
) -> None:
    nodes = [node(operator, "x i", "y", **attributes)]
    feeds = {"x": X} if constant else {"x": X, "i": indices}
    agree(file(nodes, feeds, ["y"], {"i": indices} if constant else {}), feeds)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize(
    ("operator", "indices", "updated", "attributes"),
    [
        ("ScatterElements", np.array([[[0, -1, 2, 1, 3]]]), (1, 1, 5), {"axis": 1}),
        ("ScatterND", np.array([[0, 1], [-1, 3]]), (2, 5), {}),
        ("ScatterND", np.array([[[0, 1, 2]], [[2, -4, 0]]]), (2, 1), {}),
    ],
)
def test_scatters(
    operator: str,
    indices: Values,
    updated: tuple[int, ...],
    attributes: dict[str, int],
    dtype: type[np.generic],
) -> None:
    x, updates = (RNG.integers(-99, 99, shape).astype(dtype) for shape in (X.shape, updated))
    nodes = [node(operator, "x i u", "y", **attributes)]
    feeds = {"x": x, "u": updates}
    agree(file(nodes, feeds, ["y"], {"i": indices}), feeds)


def test_what_is_refused() -> None:
    nodes = [node("GatherND", "x i", "y")]
    with pytest.raises(InputError, match="reach beyond"):
        prepared_of(file(nodes, {"x": X}, ["y"], {"i": np.array([[3]])}))
    updates, places = X[:2], np.array([[0], [1]])
    nodes = [node("ScatterND", "x i u", "y", reduction="add")]
    with pytest.raises(UnsupportedError, match="ScatterND"):
        prepared_of(file(nodes, {"x": X, "u": updates}, ["y"], {"i": places}))
    nodes = [node("ScatterND", "x i u", "y")]
    with pytest.raises(UnsupportedError, match="ScatterND"):
        prepared_of(file(nodes, {"x": X, "u": updates, "i": places}, ["y"], {}))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hots(axis: int) -> None:
    """Beyond the depth none is hot."""
    feeds = {"i": RNG.integers(-7, 8, (3, 4))}
    constants = {"depth": np.array(5), "values": np.array([-1.5, 2.0], np.float32)}
    agree(file([node("OneHot", "i depth values", "y", axis=axis)], feeds, ["y"], constants), feeds)
