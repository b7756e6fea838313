"""Edge TPUs: a pipeline over all sticks of the bench gives one stick's bytes, frame for frame."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from toolchain.edgetpu import pipeline
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.run.folder import PipelineFolder
from toolchain.edgetpu.run.runner import RunTimes
from toolchain.errors import InputError

Array = NDArray[Any]


def compiled(model: Path, stages: int, out: Path) -> PipelineFolder:
    """The model in stages, which edgetpu_compiler has compiled."""
    try:
        planned = plan([read_graph(model)], stages, Options("period"))
        folder = pipeline.split([model], planned, out)
    except InputError as error:
        pytest.skip(str(error).splitlines()[0])
    pipeline.compile_folder(folder)
    return folder


def run(folder: PipelineFolder, count: int) -> tuple[list[tuple[Array, ...]], RunTimes]:
    """Results of so many frames; the sticks are free again then."""
    runner = pipeline.open_runner(folder, "delegate")
    frames, _ = pipeline.frames_of(folder, [], count)
    results, times = list(runner.run(frames)), runner.times
    assert times is not None
    del runner
    gc.collect()  # delegates close their sticks when they go
    return results, times


def test_a_pipeline_gives_one_sticks_bytes(
    sticks: int,
    model: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    if model.suffix != ".tflite":
        pytest.skip("edgetpu_compiler takes TFLite files alone")
    count = int(request.config.getoption("--soak"))
    alone, parts = (compiled(model, n, tmp_path / str(n)) for n in (1, sticks))
    (expected, _), (got, times) = run(alone, count), run(parts, count)
    for frame, (some, others) in enumerate(zip_longest(expected, got)):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_array_equal(one, other, f"frame {frame}")
    record_property("period_ms", times.period_ms)
