"""Operators that compute in float32 become int8."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from toolchain.advise.change import Change, Proposal
from toolchain.advise.surgery import CannotChangeError, Draft
from toolchain.boards import Core
from toolchain.ir import DType, Graph
from toolchain.passes.refuse_float import computes_in_float
from toolchain.quantise.as_int8 import as_int8

_NAMED = 3
"""Operators that are named, at most."""


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    floats = [op for op in graph.ops if computes_in_float(op, graph)]
    if not floats:
        return
    with contextlib.suppress(CannotChangeError, ValueError):
        whole = as_int8(graph)
        draft = Draft.of(whole)
        for op in whole.ops:
            if op.kind == "dequantize" and whole.output(op).dtype is DType.INT8:
                source = whole.input(op, 0)
                if op.outputs[0] in whole.kept:
                    same = replace(source, name=op.outputs[0])
                    made = next(o for o in draft.ops if source.name in o.outputs)
                    renamed = tuple(op.outputs[0] if n == source.name else n for n in made.outputs)
                    draft = draft.with_op(op).with_op(
                        made, replace(made, outputs=renamed), tensors=(same,)
                    )
                else:
                    draft = draft.without(op, source.name)
        names = ", ".join(op.name for op in floats)
        named = f" ({names})" if len(floats) <= _NAMED else ""
        yield Proposal(
            floats[0].name,
            f"{len(floats)} float32 operators -> int8{named}",
            draft.settled(),
            "converter.optimizations = [tf.lite.Optimize.DEFAULT], representative_dataset, "
            "target_spec.supported_ops = [TFLITE_BUILTINS_INT8]; or `thimble quantize`",
            "`thimble quantize model.onnx --data ...`, or onnxruntime.quantization.quantize_static",
        )


CHANGE = Change("operators in float32 as int8", _proposals)
