"""Remedies for a model that is too big, which only a command knows: its options, and the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchain.errors import DoesNotFitError, InputError
from toolchain.planner import read_network
from toolchain.planning.options import PlanOptions
from toolchain.planning.rows import stream_input


@contextmanager
def more_remedies(model: Path, options: PlanOptions) -> Iterator[None]:
    """A DoesNotFitError in the block offers --stream-input where an input that arrives by rows
    would leave RAM enough.
    """
    try:
        yield
    except DoesNotFitError as error:
        lack = next((lack for lack in error.overflows if not lack.is_flash), None)
        spared = 0 if lack is None or options.stream_input else _spared_bytes(model, options)
        if lack is None or spared < lack.excess_bytes:
            raise
        offer = f"--stream-input (an input of {spared:,} bytes arrives by rows, and is not held)"
        raise DoesNotFitError(
            error.message,
            operator=error.operator,
            remedies=[offer, *error.remedies],
            overflows=error.overflows,
        ) from error


def _spared_bytes(model: Path, options: PlanOptions) -> int:
    """The bytes of the inputs that can arrive by rows; 0 where none can."""
    graph = read_network(model, options).graph
    try:
        by_rows = stream_input(graph)
    except InputError:
        return 0
    taken = {name for op in by_rows.ops if op.kind == "input_rows" for name in op.inputs}
    return sum(graph.tensors[name].size_bytes for name in taken & set(graph.inputs))
