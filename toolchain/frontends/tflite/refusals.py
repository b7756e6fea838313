"""Why operators and tensors of well-formed TFLite files are refused, and what to do about it."""

from __future__ import annotations

from toolchain.frontends.tflite.control import reached
from toolchain.frontends.tflite.file import FileModel, FileOp, FileTensor
from toolchain.frontends.tflite.unread import UNKNOWN, reason
from toolchain.ir import DType

_COMPILED = (
    ("edgetpu-custom-op", "the Edge TPU", "edgetpu_compiler"),
    ("ethos-u", "Arm's Ethos-U", "Vela"),
    ("NeutronGraph", "NXP's eIQ Neutron", "the Neutron converter"),
    ("XC_", "XMOS's xcore", "xcore-opt"),
)
"""Beginnings of the names of compiled files' custom operators, with their processor and
compiler."""
COMPLEX = (
    "it computes with complex numbers",
    "read its output by COMPLEX_ABS, REAL and IMAG (tf.abs, tf.math.real, tf.math.imag)",
)
FIXED_SHAPES = (
    "convert with a fixed input shape, the batch included: keras.Input(batch_shape=...), or a "
    "tf.TensorSpec without None"
)
QUANTISE = (
    "quantise the model fully to int8: `thimble quantize MODEL --data FILES -o OUT`, or when it is "
    "converted: converter.optimizations = [tf.lite.Optimize.DEFAULT], a representative_dataset, "
    "and target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]"
)
_BY_TYPE = {
    "FLOAT32": ("it computes in float32", QUANTISE),
    "FLOAT16": ("it uses float16", QUANTISE),
    "FLOAT64": ("it uses float64", QUANTISE),
    "UINT8": ("it takes no uint8 tensor", f"take the float model, and {QUANTISE}"),
    "INT16": ("it has no kernel for int16 activations", f"take the float model, and {QUANTISE}"),
    "INT4": ("int4 tensors must be constant", f"take the float model, and {QUANTISE}"),
    "INT2": ("int2 weights are not supported", "quantise the weights to int8 or int4"),
    "RESOURCE": ("it passes a variable on", "read and assign variables directly"),
    "STRING": ("it is about text", "look words up before the model"),
    "VARIANT": (
        "it passes a list of tensors on",
        "export recurrent layers with unroll=True, or as UNIDIRECTIONAL_SEQUENCE_LSTM",
    ),
    "COMPLEX64": COMPLEX,
    "COMPLEX128": COMPLEX,
}
_CAST = (DType.INT32, DType.FLOAT32)
"""Types that other numbers can be cast to, the better one first."""


def compiled_for(op: FileOp) -> tuple[str, str] | None:
    """The processor for which a custom operator was compiled, and its compiler."""
    found = (rest for prefix, *rest in _COMPILED if op.custom.startswith(prefix))
    target, compiler = next(found, ("", ""))
    return (target, compiler) if target else None


def of_operator(op: FileOp) -> tuple[str, str]:
    """Reason and remedy for an operator that no kind reads."""
    if compiled := compiled_for(op):
        target, compiler = compiled
        return (
            f"the file is already compiled for {target}",
            f"give the .tflite file from before {compiler}",
        )
    if op.custom.startswith("Flex"):
        return (
            "it is TensorFlow's own operator, which TFLite only calls",
            "convert without tf.lite.OpsSet.SELECT_TF_OPS",
        )
    known = reason(op.name)
    if op.code == "CUSTOM" and known is UNKNOWN:
        return (
            "custom operators have no known meaning",
            "export the model up to it, and leave it to the caller",
        )
    return known.why, known.remedy


def of_tensor(file_tensor: FileTensor, allowed: frozenset[DType]) -> tuple[str, str] | None:
    """Reason and remedy for a tensor whose element type the operator cannot take."""
    if file_tensor.refusal:
        return file_tensor.refusal
    tensor = file_tensor.tensor
    if tensor is not None:
        if tensor.dtype in allowed:
            return None
        if tensor.is_constant and tensor.dtype in (DType.INT32, DType.INT64, DType.BOOL):
            return None
        if tensor.is_constant and tensor.dtype is DType.INT8:
            return None
    cast = next((dtype.value for dtype in _CAST if dtype in allowed), "")
    default = (
        f"tensor {file_tensor.name!r} is {file_tensor.type_name.lower()}, and its kernels take "
        f"{', '.join(sorted(dtype.value for dtype in allowed))}",
        f"cast it to {cast} before the operator (tf.cast)" if cast else QUANTISE,
    )
    return _BY_TYPE.get(file_tensor.type_name, default)


def of_model(model: FileModel) -> str:
    """Why the file as a whole cannot be compiled; '' if it can."""
    unused = set(range(1, len(model.others) + 1)) - reached(model)
    if not unused:
        return ""
    return (
        f"the file holds {len(model.others) + 1} subgraphs, of which only one can be compiled, "
        "with those that it calls; export one function"
    )
