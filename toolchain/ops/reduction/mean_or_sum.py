"""Mean and sum over any axes, which differ in a division by the count of elements.

int8 and int16 follow `reference_ops::QuantizedMeanOrSum`, which shares one function between both,
too; float32 follows `reference_ops::Mean` and `Sum`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from toolchain.ops import kit
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.reduction import common
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.reduction.common_f32 import float_reduction_sample, sum_of_floats
from toolchain.ops.reduction.kernels import float_kernel, int16_sum_kernel, sum_kernel
from toolchain.ops.reduction.plain import integer_forms

_AXES = "constant axes in at most two groups of neighbours"


def mean_or_sum_spec(
    kind: str, *, mean: bool, onnx: tuple[str, ...], read_onnx: Callable[[kit.OnnxNode], None]
) -> kit.OpSpec:
    """The spec of `mean` or `sum`, of int8, int16, float32, int32 and int64.

    `onnx` names the ONNX operators that `read_onnx` reads.
    """
    builtin = kind.upper()
    int8 = kit.Form(
        kind=kind,
        attributes=Reduce,
        infer=common.infer_reduction,
        reference=lambda op, inputs: common.reduction_reference(op, inputs, mean=mean),
        select=lambda op, core: sum_kernel(op, mean=mean),
        sample=lambda rng: common.sample_reduction(rng, kind),
        tflite=kit.TfliteBinding(
            (builtin,), common.read_reduction, lambda op: common.write_reduction(op, builtin)
        ),
        axes=common.reduction_axes,
        reductions=lambda op: common.reduction_reductions(op, mean=mean),
        onnx=kit.OnnxBinding(onnx, read_onnx),
        dtype=kit.DType.INT8,
        limits=f"int8; {_AXES}",
    )
    int16 = int16_form(int8, f"int16; {_AXES}", lambda op, core: int16_sum_kernel(op, mean=mean))
    float32 = replace(
        int16,
        reference=lambda op, inputs: sum_of_floats(op, inputs, mean=mean),
        select=float_kernel(kind),
        sample=lambda rng: float_reduction_sample(rng, kind, Reduce),
        dtype=kit.DType.FLOAT32,
        limits=f"float32; {_AXES}",
    )
    plain = integer_forms(float32, lambda op: kind, limits=_AXES)
    return kit.OpSpec((int8, int16, float32, *plain))
