"""Places of outputs that reference runtimes leave unwritten, and Thimble's kernels fill with 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from toolchain.frontends.tflite.file import FileOp
from toolchain.ops.detection import detection_postprocess
from toolchain.ops.signal import signal_energy, signal_framer, signal_stacker
from toolchain.ops.spec import Array
from toolchain.reference.detections import COUNT, without_rest

_VALID = 1
"""The output that says whether the frames are valid."""


def leaves_places(op: FileOp) -> bool:
    """Whether a reference leaves places of the operator's outputs unwritten. The operator is then
    judged alone, lest bytes of another one lie there."""
    return op.custom in _FILLED


def telling(op: FileOp) -> tuple[int, ...]:
    """The tensors of its outputs without which `filled` cannot tell where such places are."""
    return tuple(
        op.outputs[place] for place in _TELLING.get(op.custom, ()) if place < len(op.outputs)
    )


def filled(op: FileOp, values: Mapping[int, Array]) -> dict[int, Array]:
    """The operator's outputs, by tensor, with 0 in such places, as far as `values` say which these
    are."""
    return _FILLED[op.custom](op, values) if leaves_places(op) else {}


def _valid_frames(op: FileOp, values: Mapping[int, Array]) -> dict[int, Array]:
    """Fill frames that the second output marks as invalid."""
    frames, valid = (op.outputs[0], op.outputs[_VALID]) if len(op.outputs) == 2 else (-1, -1)
    if frames not in values or valid not in values or values[valid].all():
        return {}
    return {frames: np.zeros_like(values[frames])}


def _part_of_spectrum(op: FileOp, values: Mapping[int, Array]) -> dict[int, Array]:
    """Fill the energies outside of `start_index` to before `end_index`."""
    settled = {}
    for index in op.outputs[:1]:
        if index in values:
            part = slice(int(op.options.start_index), int(op.options.end_index))
            settled[index] = np.zeros_like(values[index])
            settled[index][part] = values[index][part]
    return settled


_TELLING: Mapping[str, tuple[int, ...]] = {
    detection_postprocess.CUSTOM: (COUNT,),
    signal_framer.CUSTOM: (_VALID,),
    signal_stacker.CUSTOM: (_VALID,),
}
_FILLED: Mapping[str, Callable[[FileOp, Mapping[int, Array]], dict[int, Array]]] = {
    detection_postprocess.CUSTOM: without_rest,
    signal_framer.CUSTOM: _valid_frames,
    signal_stacker.CUSTOM: _valid_frames,
    signal_energy.CUSTOM: _part_of_spectrum,
}
