"""Operators of a TFLite file that become several of ours, or take part in one with others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite import (
    bidirectional,
    chosen,
    circular,
    compressed,
    mediapipe,
    refusals,
)
from toolchain.frontends.tflite.file import FileModel, FileOp, FileTensor
from toolchain.frontends.tflite.operators import OperatorReader, settled_as
from toolchain.frontends.tflite.spectra import Spectra, plain
from toolchain.frontends.tflite.states import check_outside
from toolchain.ir import DType, Graph, Op, Tensor
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
            replace(read, name=f"{read.name}_{name}")
            for layer, target, name in zip(layers, targets, ("forwards", "backwards"), strict=True)
            for read in self._read(replace(layer, outputs=(target,)))
        ]
        if merged:
            (target,) = op.outputs
            joined = bidirectional.joined(op, made)
            read = self._file_tensors[target]
            assert read.tensor is not None
            seen = Graph("", MappingProxyType(self._tensors), (), (), ())
            joined = replace(joined, outputs=(read.name,))
            (inferred,) = specs()[joined.kind].infer(joined, seen)
            self._learn(target, settled_as(read, inferred, op))
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
            reason = refusals.of_tensor(self._file_tensors[number], frozenset(DType))
            if reason is not None:
                raise RefusedError(*reason)

    def _added(self, like: int, ending: str) -> int:
        """Add a tensor, whose shape follows from its operator; return its number."""
        model_tensor = self._file_tensors[like]
        if model_tensor.tensor is None:
            raise RefusedError(f"tensor {model_tensor.name!r} is {model_tensor.type_name.lower()}")
        added = plain(model_tensor, self._names.fresh(f"{model_tensor.name}_{ending}"))
        self._file_tensors.append(added)
        self._variables.grow([added])
        return len(self._file_tensors) - 1

    def _transposed(self, op: FileOp) -> list[Op]:
        """MediaPipe's transposed convolution, whose output shape becomes a constant."""
        self._check_types(*(i for i in (*op.inputs, *op.outputs) if i != -1))
        read = mediapipe.transposed(op, len(self._file_tensors))
        x, weights = (self._input(op.inputs[i]) for i in (mediapipe.INPUT, mediapipe.WEIGHTS))
        assert x is not None and weights is not None
        value = mediapipe.output_shape(op, x, weights)
        name = self._names.fresh(f"{self._file_tensors[op.outputs[0]].name}_shape")
        shape = Tensor(name, value.shape, DType.INT32, None, value)
        self._file_tensors.append(FileTensor(name, shape, shape.dtype.name))
        self._variables.grow(self._file_tensors[-1:])
        self._learn(len(self._file_tensors) - 1, shape)
        return self._read(read)

    def _windows(self, op: FileOp) -> list[Op]:
        """MediaPipe's pooling with the places of the maxima, or their way back."""
        ends = (*op.inputs, *op.outputs)
        if len(ends) != 3 or -1 in ends:
            raise op.miscounted()
        self._check_types(*ends)
        inputs = [x for x in map(self._input, op.inputs) if x is not None]
        outputs = [self._output(self._file_tensors[i], narrowed=False) for i in op.outputs]
        compose = mediapipe.pooled if op.custom == mediapipe.POOLED else mediapipe.unpooled
        first, second, third = (*inputs, *outputs)
        made = compose(op, first, second, third, self._names)
        self._tensors |= {tensor.name: tensor for tensor in made.tensors}
        for index, output in zip(op.outputs, outputs, strict=True):
            settled = settled_as(
                self._file_tensors[index], TensorType(made.shape, output.dtype), op
            )
            self._learn(index, settled)
        return made.ops

    def _ring(self, op: FileOp) -> list[Op]:
        """A circular buffer, whose output the file may mark as a variable."""
        if (len(op.inputs), len(op.outputs)) != (1, 1) or op.inputs[0] == -1:
            raise op.miscounted()
        (source,), (target,) = op.inputs, op.outputs
        target_tensor = self._file_tensors[target]
        self._check_types(target, source)
        x, y = self._input(source), self._output(target_tensor, narrowed=False)
        assert x is not None
        check_outside(op)
        made = circular.ring(op, x, y, self._names)
        self._tensors |= {tensor.name: tensor for tensor in made.tensors}
        self._states += made.states
        self._file_tensors[target] = replace(target_tensor, variable=False)
        self._learn(target, y)
        return list(made.ops)

    def _decoded(self, op: FileOp) -> list[Op]:
        """Compressed constants, which are constants from here on."""
        if len(op.inputs) != 2 * len(op.outputs) or -1 in op.inputs:
            raise op.miscounted()
        for place, target in enumerate(op.outputs):
            given = [self._file_tensors[i] for i in op.inputs[2 * place : 2 * place + 2]]
            packed, ancillary = (self._tensors.get(target_tensor.name) for target_tensor in given)
            target_tensor = self._file_tensors[target]
            self._check_types(target)
            if target_tensor.tensor is None or packed is None or ancillary is None:
                raise RefusedError("its tensors have no known type")
            value = compressed.decoded(packed, ancillary, target_tensor.tensor)
            tensor = replace(target_tensor.tensor, constant=value)
            self._file_tensors[target] = replace(target_tensor, tensor=tensor)
            self._learn(target, tensor)
        return []

    def _chosen(self, op: FileOp) -> list[Op]:
        """ONE_HOT and diagonals: a choice by a mask."""
        if len(op.outputs) != 1 or -1 in op.inputs:
            raise op.miscounted()
        (target,) = op.outputs
        target_tensor = self._file_tensors[target]
        self._check_types(*op.inputs, target)
        inputs = [x for x in map(self._input, op.inputs) if x is not None]
        y = self._output(target_tensor, narrowed=False)
        made, output = chosen.chosen(op, inputs, y, self._names)
        self._tensors |= {tensor.name: tensor for tensor in made.tensors}
        self._learn(target, settled_as(target_tensor, TensorType(output.shape, output.dtype), op))
        return made.ops

    def _of_spectrum(self, op: FileOp) -> list[Op]:
        """The operator that reads complex numbers; none for those that make and reshape them."""
        behind = self._spectra.operator(op)
        if behind is None:
            self._known.update(op.outputs)
            return []
        if not behind.reshaped:
            return self._read(behind.op)
        (target,) = op.outputs
        target_tensor = self._file_tensors[target]
        number = self._added(target, "spectrum")
        name = self._file_tensors[number].name
        assert target_tensor.tensor is not None
        (read,) = self._read(replace(behind.op, outputs=(number,)))
        value = self._tensors[name]
        if value.elements != target_tensor.tensor.elements:
            raise InputError(f"{op}: {value} does not fit its output {target_tensor.tensor}")
        self._learn(target, target_tensor.tensor)
        shape = Reshape(target_tensor.tensor.shape)
        return [read, Op("reshape", f"{read.name}_reshaped", (name,), (target_tensor.name,), shape)]
