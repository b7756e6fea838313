"""Parts that are kept of one Fourier transform are outputs of one operator.

Spectra whose real and imaginary parts are both used come as two operators, which would transform
twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import Op
from toolchain.ops.signal.rfft2d import Rfft2d
from toolchain.passes._pass import Prepared


@dataclass(frozen=True)
class MergeSpectra:
    """Merge operators that keep parts of one Fourier transform."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        merged: list[Op] = []
        places: dict[tuple[str, int, int], int] = {}
        for op in graph.ops:
            spectrum = op.attributes
            if not isinstance(spectrum, Rfft2d):
                merged.append(op)
                continue
            key = (op.inputs[0], spectrum.height, spectrum.width)
            place = places.setdefault(key, len(merged))
            if place == len(merged):
                merged.append(op)
                continue
            before = merged[place]
            kept = before.attributes
            assert isinstance(kept, Rfft2d)
            if set(kept.kept) & set(spectrum.kept):
                merged.append(op)
                continue
            both = replace(kept, kept=(*kept.kept, *spectrum.kept))
            outputs = (*before.outputs, *op.outputs)
            merged[place] = replace(before, outputs=outputs, attributes=both)
        if len(merged) == len(graph.ops):
            return prepared
        return prepared.with_graph(graph.with_ops(merged))
