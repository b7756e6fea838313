"""What reference runtimes leave unwritten in outputs, and Thimble's kernels fill with 0."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from toolchain.frontends.tflite.file import FileOp
from toolchain.ops.signal import signal_framer, signal_stacker
from toolchain.ops.spec import Array
from toolchain.reference.detections import is_detector, without_rest


def leaves_places(op: FileOp) -> bool:
    """Whether it does so: it is then judged alone, for what lies there not to be another's."""
    return is_detector(op) or op.custom in (signal_framer.CUSTOM, signal_stacker.CUSTOM)


def filled(op: FileOp, values: Mapping[int, Array]) -> dict[int, Array]:
    """Its outputs, by tensor, with 0 in such places, as far as `values` say which these are.

    SignalFramer and SignalStacker say in their second output whether the first one is valid.
    """
    if is_detector(op):
        return without_rest(op, values)
    frames, valid = op.outputs if len(op.outputs) == 2 else (-1, -1)
    if not leaves_places(op) or frames not in values or valid not in values:
        return {}
    return {} if values[valid].all() else {frames: np.zeros_like(values[frames])}
