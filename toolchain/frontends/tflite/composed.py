"""Operators of a TFLite file that become several of ours, or take part in one with others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite import bidirectional, chosen, circular, compressed, refusals
from toolchain.frontends.tflite.file import FileModel, FileOp
from toolchain.frontends.tflite.operators import OperatorReader, settled_as
from toolchain.frontends.tflite.spectra import Spectra, plain
from toolchain.frontends.tflite.states import check_outside
from toolchain.ir import DType, Graph, Op
from toolchain.ops import specs
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.spec import TensorType


class ComposedReader(OperatorReader):
    """Layers of both directions, rings, variables, choices by a mask, packed constants, spectra."""

    def __init__(self, model: FileModel, path: Path) -> None:
        super().__init__(model, path)
        self._spectra = Spectra(model)

    def _bidirectional(self, op: FileOp) -> list[Op]:
        """Two layers, the second one backwards; their outputs are joined if the file says so."""
        layers = bidirectional.layers(op)
        merged = len(op.outputs) == 1
        targets = op.outputs
        if merged:
            endings = ("forwards", "backwards")
            targets = tuple(self._added(op.outputs[0], ending) for ending in endings)
        made = [
            replace(found, name=f"{found.name}_{name}")
            for layer, target, name in zip(layers, targets, ("forwards", "backwards"), strict=True)
            for found in self._read(replace(layer, outputs=(target,)))
        ]
        if merged:
            (target,) = op.outputs
            joined = bidirectional.joined(op, made)
            found = self._found[target]
            assert found.tensor is not None
            seen = Graph("", MappingProxyType(self._tensors), (), (), ())
            joined = replace(joined, outputs=(found.name,))
            (inferred,) = specs()[joined.kind].infer(joined, seen)
            self._learn(target, settled_as(found, inferred, op))
            made.append(joined)
        return made

    def _variable(self, op: FileOp) -> list[Op]:
        """A resource variable, of which a read becomes an operator."""
        read = self._variables.operator(op, self._tensors)
        self._known.update(op.outputs)
        return [] if read is None else [read]

    def _check_types(self, *numbers: int) -> None:
        """Raise RefusedError for the first of these tensors whose element type none has here."""
        for number in numbers:
            reason = refusals.of_tensor(self._found[number], frozenset(DType))
            if reason is not None:
                raise RefusedError(*reason)

    def _added(self, like: int, ending: str) -> int:
        """The number of a tensor more, whose shape its operator says."""
        found = self._found[like]
        if found.tensor is None:
            raise RefusedError(f"tensor {found.name!r} is {found.type_name.lower()}")
        added = plain(found, self._names.fresh(f"{found.name}_{ending}"))
        self._found.append(added)
        self._variables.grow([added])
        return len(self._found) - 1

    def _ring(self, op: FileOp) -> list[Op]:
        """A circular buffer, whose output the file may mark as a variable."""
        if (len(op.inputs), len(op.outputs)) != (1, 1) or op.inputs[0] == -1:
            raise InputError(f"{op} has {len(op.inputs)} inputs and {len(op.outputs)} outputs")
        (source,), (target,) = op.inputs, op.outputs
        found = self._found[target]
        self._check_types(target, source)
        x, y = self._input(source), self._output(found, narrowed=False)
        assert x is not None
        check_outside(op)
        made = circular.ring(op, x, y, self._names)
        self._tensors |= {tensor.name: tensor for tensor in made.tensors}
        self._states += made.states
        self._found[target] = replace(found, variable=False)
        self._learn(target, y)
        return list(made.ops)

    def _decoded(self, op: FileOp) -> list[Op]:
        """Compressed constants, which are constants from here on."""
        if len(op.inputs) != 2 * len(op.outputs) or -1 in op.inputs:
            raise InputError(f"{op} has {len(op.inputs)} inputs and {len(op.outputs)} outputs")
        for place, target in enumerate(op.outputs):
            given = [self._found[i] for i in op.inputs[2 * place : 2 * place + 2]]
            packed, ancillary = (self._tensors.get(found.name) for found in given)
            found = self._found[target]
            self._check_types(target)
            if found.tensor is None or packed is None or ancillary is None:
                raise RefusedError("its tensors have no known type")
            value = compressed.decoded(packed, ancillary, found.tensor)
            tensor = replace(found.tensor, constant=value)
            self._found[target] = replace(found, tensor=tensor)
            self._learn(target, tensor)
        return []

    def _chosen(self, op: FileOp) -> list[Op]:
        """ONE_HOT and diagonals: a choice by a mask."""
        if len(op.outputs) != 1 or -1 in op.inputs:
            raise InputError(f"{op} has {len(op.inputs)} inputs and {len(op.outputs)} outputs")
        (target,) = op.outputs
        found = self._found[target]
        self._check_types(*op.inputs, target)
        inputs = [x for x in map(self._input, op.inputs) if x is not None]
        y = self._output(found, narrowed=False)
        made, output = chosen.chosen(op, inputs, y, self._names)
        self._tensors |= {tensor.name: tensor for tensor in made.tensors}
        self._learn(target, settled_as(found, TensorType(output.shape, output.dtype), op))
        return made.ops

    def _of_spectrum(self, op: FileOp) -> list[Op]:
        """Of operators that make and reshape complex numbers nothing; one that reads them."""
        behind = self._spectra.operator(op)
        if behind is None:
            self._known.update(op.outputs)
            return []
        if not behind.reshaped:
            return self._read(behind.op)
        (target,) = op.outputs
        found = self._found[target]
        number = self._added(target, "spectrum")
        name = self._found[number].name
        assert found.tensor is not None
        (read,) = self._read(replace(behind.op, outputs=(number,)))
        value = self._tensors[name]
        if value.elements != found.tensor.elements:
            raise InputError(f"{op}: {value} does not fit its output {found.tensor}")
        self._learn(target, found.tensor)
        shape = Reshape(found.tensor.shape)
        return [read, Op("reshape", f"{read.name}_reshaped", (name,), (found.name,), shape)]
