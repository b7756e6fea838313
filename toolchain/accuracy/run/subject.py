"""The model that is measured: its ends, or those of a compiled folder, and what follows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolchain.deployment.decoded import Decoder
from toolchain.deployment.folder import PLAN_FILE, compiled_model
from toolchain.errors import InputError
from toolchain.files.records import field_of, read_json
from toolchain.frontends import model_sha256
from toolchain.ir import End, Graph
from toolchain.ops.detection.decode_boxes import KIND, OUTPUTS, DecodeBoxes
from toolchain.ops.detection.detection_postprocess import SPEC as POSTPROCESS
from toolchain.planner import Network, read_network
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.option import Bound, bound_source


@dataclass(frozen=True)
class Subject:
    """A model as its user sees it.

    outputs   all of them, the boxes of `--decode` included
    labels    names of classes by output
    boxes     the outputs that hold "boxes", "classes", "scores" and "count", of `--decode` or
              TFLite_Detection_PostProcess; None without boxes
    decoded   whether `--decode` makes them
    source    the `--preprocess` that makes the input
    stateful  whether it keeps values from run to run
    decoder   makes the boxes of the raw heads where no board does
    """

    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    labels: Mapping[str, tuple[str, ...]]
    boxes: Mapping[str, str] | None
    source: Bound | None
    stateful: bool
    decoded: bool = False
    decoder: Decoder | None = None

    @property
    def heads(self) -> tuple[End, ...]:
        """The outputs of the model file itself."""
        made = self.boxes if self.decoded and self.boxes is not None else {}
        return tuple(end for end in self.outputs if end.name not in made.values())

    @property
    def box_classes(self) -> int | None:
        """The classes of boxes; None where that is not known."""
        if self.decoder is None or not isinstance(self.decoder.op.attributes, DecodeBoxes):
            return None
        return self.decoder.op.attributes.classes


def subject_of_model(model: Path, options: PlanOptions) -> Subject:
    """A model file. Raises InputError and UnsupportedError as planning does."""
    network = read_network(model, options)
    graph = network.graph
    inputs, outputs = _ends(network, graph.inputs), _ends(network, graph.outputs)
    source, decoder = None, Decoder.of(graph)
    if options.preprocess is not None:
        if len(inputs) != 1:
            raise InputError(f"--preprocess makes one input, and {model} has {len(inputs)}")
        source = bound_source(options.preprocess, inputs[0].tensor, stateful=bool(graph.states))
    boxes = _boxes(((op.kind, op.outputs) for op in graph.ops), outputs)
    decoded = decoder is not None
    stateful = bool(graph.states)
    return Subject(inputs, outputs, network.about.labels, boxes, source, stateful, decoded, decoder)


def subject_of_folder(folder: Path, graph: Graph | None = None) -> Subject:
    """A compiled folder; `graph`: what was compiled, where it is known. Raises InputError where
    nothing was compiled."""
    made = compiled_model(folder)
    decoder = None if graph is None else Decoder.of(graph)
    boxes = made.boxes
    if boxes is None:
        where = str(folder / PLAN_FILE)
        ops = field_of(read_json(folder / PLAN_FILE), "operators", tuple[Any, ...], where)
        written = (
            (field_of(op, "kind", str, where), field_of(op, "outputs", tuple[str, ...], where))
            for op in ops
        )
        boxes = _boxes(written, made.outputs)
    return Subject(
        made.inputs,
        made.outputs,
        made.labels,
        boxes,
        made.source(),
        made.stateful,
        made.boxes is not None,
        decoder,
    )


def _boxes(
    ops: Iterable[tuple[str, tuple[str, ...]]], outputs: Sequence[End]
) -> dict[str, str] | None:
    """The outputs that hold boxes, by what they hold. `ops`: kinds and outputs of the operators."""
    names = {end.name for end in outputs}
    for kind, made in ops:
        if kind in (KIND, POSTPROCESS.kind) and names.issuperset(made):
            return dict(zip(OUTPUTS, made, strict=True))
    return None


def subject_beside(folder: Path, model: Path, options: PlanOptions) -> Subject:
    """A compiled folder, with the decoder of the model file that it was compiled from.

    Raises InputError for another file, and where the boxes need `--decode` again.
    """
    compiled_from = field_of(read_json(folder / PLAN_FILE), "model_sha256", str, str(folder), "")
    if compiled_from != model_sha256(model):
        raise InputError(f"{folder} was not compiled from {model}: its SHA-256 is another")
    found = subject_of_folder(folder)
    if not found.decoded:
        return found
    if options.decode is None:
        raise InputError(
            f"{folder} was compiled with --decode: give it again, for the boxes of {model}"
        )
    return replace(found, decoder=Decoder.of(read_network(model, options).graph))


def float_decoder(model: Path, options: PlanOptions) -> tuple[Decoder, tuple[End, ...]]:
    """The decoder of a float model's heads, and these. Raises InputError where there is none."""
    network = read_network(model, replace(options, allow_float=True, preprocess=None))
    decoder = Decoder.of(network.graph)
    if decoder is None:
        raise InputError(f"the boxes of the float model {model} need --decode")
    heads = [name for name in network.graph.outputs if name not in decoder.op.outputs]
    return decoder, _ends(network, heads)


def _ends(network: Network, names: tuple[str, ...] | list[str]) -> tuple[End, ...]:
    known = {boundary.tensor: boundary for boundary in network.boundaries}
    return tuple(End(network.graph.tensors[name], known.get(name)) for name in names)
