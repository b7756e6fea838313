"""The model that is measured: its ends, or those of a compiled folder, and what follows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from toolchain.deployment.decoded import Decoder
from toolchain.deployment.folder import PLAN_FILE, compiled_model
from toolchain.errors import InputError
from toolchain.files.records import field_of, read_json
from toolchain.frontends import model_sha256
from toolchain.ir import End, Graph
from toolchain.ops.detection.decode_boxes import OUTPUTS, DecodeBoxes
from toolchain.planner import Network, read_network
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.option import Bound, bound_source


@dataclass(frozen=True)
class Subject:
    """A model as its user sees it.

    outputs   all of them, the boxes of `--decode` included
    labels    names of classes by output
    boxes     the outputs that hold "boxes", "classes", "scores" and "count"; None without boxes
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
    decoder: Decoder | None = None

    @property
    def heads(self) -> tuple[End, ...]:
        """The outputs of the model file itself."""
        made = {} if self.boxes is None else self.boxes
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
    boxes = None if decoder is None else dict(zip(OUTPUTS, decoder.op.outputs, strict=True))
    stateful = bool(graph.states)
    return Subject(inputs, outputs, network.about.labels, boxes, source, stateful, decoder)


def subject_of_folder(folder: Path, graph: Graph | None = None) -> Subject:
    """A compiled folder; `graph`: what was compiled, where it is known. Raises InputError where
    nothing was compiled."""
    made = compiled_model(folder)
    decoder = None if graph is None else Decoder.of(graph)
    return Subject(
        made.inputs,
        made.outputs,
        made.labels,
        made.boxes,
        made.source(),
        made.stateful,
        decoder,
    )


def subject_beside(folder: Path, model: Path, options: PlanOptions) -> Subject:
    """A compiled folder, with the decoder of the model file that it was compiled from.

    Raises InputError for another file, and where the boxes need `--decode` again.
    """
    compiled_from = field_of(read_json(folder / PLAN_FILE), "model_sha256", str, str(folder), "")
    if compiled_from != model_sha256(model):
        raise InputError(f"{folder} was not compiled from {model}: its SHA-256 is another")
    found = subject_of_folder(folder)
    if found.boxes is None:
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
