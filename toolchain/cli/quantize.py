"""`thimble quantize`: a float ONNX or TFLite model to int8."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.markup import escape
from rich.table import Table

from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import REQUIRED, argument, grouped, option, without
from toolchain.cli._options import timeout_option
from toolchain.cli._output import Output, write_json
from toolchain.cli._samples import FORMATS, SampleOptions
from toolchain.errors import InputError, UnsupportedError, did_you_mean
from toolchain.frontends import load_model
from toolchain.passes import prepare
from toolchain.passes.refuse_float import refuse_float
from toolchain.preprocess.samples import files_of
from toolchain.quantise.post_training import METHODS, Quantised, as_json, quantise_model
from toolchain.quantise.tflite import SUFFIXES, quantise_tflite
from toolchain.report.gates import check, gates
from toolchain.report.text import size

_SHOWN = 15


@grouped
def command(
    model: Path = argument("MODEL", "A float ONNX or TFLite model."),
    out: Path = option(REQUIRED, "File to write.", "-o", unit="OUT"),
    *,
    data: list[Path] | None = option(
        None,
        f"Inputs to calibrate with: {FORMATS} (of float32). One sample or many in a "
        "file; may be repeated.",
        "-d",
        unit="FILE",
    ),
    more: list[Path] | None = argument(
        "FILE", "More data, from the shell's `--data samples/*.npy`.", default=None
    ),
    method: str = option(
        METHODS[0], f"How ranges are chosen: {', '.join(METHODS)}. TFLite has the first."
    ),
    per_tensor: bool = option(False, "One scale for all of an operator's weights."),
    samples: Annotated[SampleOptions, without("real")],
    timeout: float = timeout_option(),
    output: Annotated[Output, without("html")],
) -> None:
    """Quantise a float ONNX or TFLite model to int8, and report the loss.

    onnxruntime turns ONNX files into QDQ files. TFLite files may be float, float16 or dynamic-range
    (int8 weights beside float activations); operators without an int8 kernel stay float, and are
    named. Inputs and outputs stay float in the file; the firmware takes int8 (`compile`).

    Weights become symmetric int8 per channel, activations int8 with a zero point, in every
    operator. 50 to 500 samples of realistic data are enough. The report compares the int8 model
    with the float one on up to 32 of the samples. It gives signal over noise in dB for each tensor
    (below 10, accuracy is lost), and how often the largest output is the same.

    Example: `thimble quantize model.onnx --data samples/*.npy -o model_int8.onnx`; or with
    photographs `--data photos/ --resize --range 0..1 --mean 0.485,0.456,0.406 --std
    0.229,0.224,0.225`, as torchvision's models are trained.
    """
    chosen = {name.casefold(): name for name in METHODS}.get(method.casefold())
    if chosen is None:
        known = f"{', '.join(METHODS)}{did_you_mean(method, METHODS)}"
        raise InputError(f"--method {method!r} is unknown: it is one of {known}")
    files = files_of((*(data or ()), *(more or ())))
    conditions = gates(output.fail_on)
    asked = samples.scaling()
    is_tflite = model.suffix in SUFFIXES
    if is_tflite and chosen != METHODS[0]:
        raise InputError(f"--method {method} is for ONNX models; TFLite ones have {METHODS[0]}")
    with progress() as step:
        if is_tflite:
            result = quantise_tflite(
                model,
                files,
                out,
                per_channel=not per_tensor,
                scaling=asked,
                report=step,
                limit_seconds=timeout,
            )
        else:
            result = quantise_model(
                model,
                files,
                out,
                method=chosen,
                per_channel=not per_tensor,
                scaling=asked,
                report=step,
                limit_seconds=timeout,
            )
    if output.json:
        write_json(output.json, as_json(result, out))
    if output.has_tables:
        _print(result, out)
    check(conditions, as_json(result, out))


def _print(result: Quantised, out: Path) -> None:
    console = output_console()
    worst = sorted(result.layers, key=lambda layer: layer.noise_db)[:_SHOWN]
    if worst:
        title = "what quantisation costs, worst first"
        if len(result.layers) > len(worst):
            title += f" ({len(worst)} of {len(result.layers)}; --json lists all)"
        table = Table(title=title, header_style="bold")
        for heading in ("tensor", "operator"):
            table.add_column(heading, overflow="fold")
        for heading in ("signal/noise dB", "largest error"):
            table.add_column(heading, justify="right")
        for layer in worst:
            cells = (f"{layer.noise_db:.1f}", f"{layer.max_error:.4g}")
            table.add_row(escape(layer.tensor), layer.operator, *cells)
        console.print(table)
    for output in result.outputs:
        console.say(
            f"output {output.output}: {output.noise_db:.1f} dB, largest error "
            f"{output.max_error:.4g}, mean {output.mean_error:.4g}, same largest element in "
            f"{output.agreement:.1%} of rows"
        )
    for operator, why in result.left_in_float:
        console.say(f"stays in float: {operator}: {why}")
    more = " --float" if result.left_in_float and _is_float(out) else ""
    console.say(
        f"{out}: {size(result.int8_bytes)} (float {size(result.float_bytes)}), calibrated on "
        f"{result.samples} samples, compared on {result.compared}. Next: thimble plan {out}{more}"
    )


def _is_float(model: Path) -> bool:
    """Whether so much stays in float that the model needs leave for it."""
    try:
        refuse_float(prepare(load_model(model)).graph, allowed=False)
    except UnsupportedError:
        return True
    return False
