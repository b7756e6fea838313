"""Why operators and tensors of well-formed TFLite files are refused, and what to do about it."""

from __future__ import annotations

from toolchain.frontends._tflite_file import FileModel, FileOp, FileTensor
from toolchain.ir import DType

_STATE = "it keeps state between runs, which is not supported yet"
_STATE_REMEDY = "export the model without streaming state, taking its whole window as input"
_STATEFUL = frozenset({"ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "SVDF", "VAR_HANDLE"})
_RECURRENT = frozenset(
    {
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_RNN",
        "LSTM",
        "RNN",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "UNIDIRECTIONAL_SEQUENCE_RNN",
    }
)
_CONTROL = frozenset({"CALL", "IF", "WHILE"})
QUANTISE = (
    "quantise the model fully to int8: set converter.optimizations = [tf.lite.Optimize.DEFAULT], a "
    "representative_dataset, and target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]"
)
_BY_TYPE = {
    "FLOAT32": ("it computes in float32", QUANTISE),
    "FLOAT16": ("it uses float16", QUANTISE),
    "FLOAT64": ("it uses float64", QUANTISE),
    "UINT8": (
        "it uses the legacy uint8 quantisation, which is not supported yet",
        "convert the original model again with the int8 scheme of TensorFlow 2",
    ),
    "INT16": ("int16 activations are not supported yet", "convert with int8 activations"),
    "INT4": ("int4 weights are not supported yet", "convert with int8 weights"),
    "INT2": ("int2 weights are not supported", "convert with int8 weights"),
    "RESOURCE": (_STATE, _STATE_REMEDY),
}


def of_operator(op: FileOp) -> tuple[str, str]:
    """Why, and the remedy, for an operator that no kind reads."""
    if op.custom == "edgetpu-custom-op":
        return (
            "the file is already compiled for the Edge TPU",
            "give the .tflite file from before edgetpu_compiler",
        )
    if op.code == "CUSTOM":
        return "custom operators have no known meaning", "remove it from the exported model"
    if op.code in _STATEFUL:
        return _STATE, _STATE_REMEDY
    if op.code in _RECURRENT:
        return "recurrent operators are not supported yet", "use convolutions over the window"
    if op.code in _CONTROL:
        return "control flow is not supported", "export the model without branches and loops"
    return (
        "there is no kernel for it",
        "replace it in the model (`thimble ops` lists what there is)",
    )


def of_tensor(found: FileTensor, allowed: frozenset[DType]) -> tuple[str, str] | None:
    """Why, and the remedy, for a tensor that an operator of these element types cannot take."""
    if found.refusal:
        return found.refusal, "convert the model without it"
    tensor = found.tensor
    if tensor is not None:
        if tensor.dtype in allowed:
            return None
        if tensor.is_constant and tensor.dtype in (DType.INT32, DType.INT64, DType.BOOL):
            return None
        if tensor.is_constant and tensor.dtype is DType.INT8:
            return None
    default = (f"tensor {found.name!r} is {found.type_name.lower()}", "convert with int8 tensors")
    return _BY_TYPE.get(found.type_name, default)


def of_model(model: FileModel) -> str:
    """Why the file as a whole cannot be compiled; '' where it can."""
    if model.subgraphs == 1:
        return ""
    return (
        f"the file holds {model.subgraphs} subgraphs, of which only one can be compiled; "
        "export one function, without control flow and state"
    )
