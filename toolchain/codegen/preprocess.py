"""The stage before a model, as C: from sound, or a camera's frame, to its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.codegen.arrays import c_type
from toolchain.codegen.environment import environment
from toolchain.codegen.header import Accessor
from toolchain.errors import InputError
from toolchain.ir import DType
from toolchain.memory.plan import Plan
from toolchain.ops.signal.fourier import fourier_tables
from toolchain.preprocess.audio_input import FEATURE_SCALE, AudioInput, BoundAudio
from toolchain.preprocess.features import noise_parameters
from toolchain.preprocess.image import BoundImage
from toolchain.preprocess.option import Preprocess
from toolchain.preprocess.tables import filter_bank, gain_table, window_weights

RAN = -20
"""The status of a function that takes samples, when the model has run."""


def functions(preprocess: Preprocess) -> tuple[str, ...]:
    """Our kernels that the code calls."""
    if isinstance(preprocess, AudioInput):
        return ("thimble_features_s16",)
    return ("thimble_image_row_s8",)


@dataclass(frozen=True)
class _Table:
    """A constant array of the generated C."""

    name: str
    comment: str
    data: NDArray[Any]

    @property
    def c_type(self) -> str:
        if self.data.dtype == np.uint16:
            return "uint16_t"
        return c_type(DType(self.data.dtype.name))


FRONT_ENDS = ("audio", "image")
"""The ends of the files' names: for sound, for images."""


def preprocess_files(
    plan: Plan,
    preprocess: Preprocess,
    inputs: Sequence[Accessor],
    headers: Sequence[str],
    values: Mapping[str, object],
) -> Mapping[str, str]:
    """The files by name. `values` are those of the model's own templates; `headers` declare the
    kernels. Raises InputError where the model's input cannot be made so.
    """
    if len(inputs) != 1:
        raise InputError(f"--preprocess takes a model of one input, not of {len(inputs)}")
    (end,) = inputs
    if isinstance(preprocess, AudioInput):
        kind = FRONT_ENDS[0]
        made = _audio(preprocess.bound(end.tensor, stateful=bool(plan.graph.states)))
    else:
        kind = FRONT_ENDS[1]
        made = _image(preprocess.bound(end.tensor))
    made = {**values, **made, "input": end, "headers": headers}
    render = environment().get_template
    return MappingProxyType(
        {
            f"{values['name']}_{kind}{suffix}": render(f"preprocess/{kind}{suffix}.j2").render(made)
            for suffix in (".h", ".c")
        }
    )


def _audio(bound: BoundAudio) -> dict[str, object]:
    bank = filter_bank(bound.features)
    return {
        "audio": bound,
        "bank": bank,
        "noise": noise_parameters(bound.features),
        "scaling": bound.scaling,
        "feature_scale": float(FEATURE_SCALE),
        "spectrum": max(bound.features.fft_length // 2 + 1, bank.energies),
        "tables": _audio_tables(bound),
        "ran": RAN,
    }


def _audio_tables(bound: BoundAudio) -> tuple[_Table, ...]:
    features = bound.features
    fourier, bank = fourier_tables(features.fft_length), filter_bank(features)
    gains = (
        [_Table("gains", "Gain control: parabolas over the noise.", gain_table(features))]
        if features.pcan
        else []
    )
    return (
        _Table("window_weights", "Hann's window.", window_weights(features.window)),
        _Table("order", "Where the transform's input goes.", fourier.order),
        _Table("twiddles", "The transform's factors.", fourier.twiddles),
        _Table("halves", "The same, for its last pass.", fourier.halves),
        _Table("band_starts", "The first energy of each band.", bank.starts),
        _Table("band_weight_starts", "The first weight of each band.", bank.weight_starts),
        _Table("band_widths", "Energies of each band.", bank.widths),
        _Table("band_weights", "What each energy adds to its band.", bank.weights),
        _Table("band_unweights", "What it adds to the next one.", bank.unweights),
        *gains,
    )


def _image(bound: BoundImage) -> dict[str, object]:
    columns, rows = bound.columns, bound.rows
    tables = (
        _Table("column_starts", "The first pixel of each column.", columns.starts),
        _Table("column_weights", "The weights of each column's pixels.", columns.weights),
        _Table("row_starts", "The first line of each row.", rows.starts),
        _Table("row_weights", "The weights of each row's lines.", rows.weights),
        _Table("values", "What the levels of each channel become.", bound.values),
    )
    return {"bound": bound, "tables": tables}
