"""`thimble weights`: weights for code that is there already."""

from __future__ import annotations

from pathlib import Path

from toolchain.cli import _completion as completion
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import REQUIRED, argument, grouped, option
from toolchain.cli._options import CmsisNnOption
from toolchain.cli._output import JsonOption, tell_json
from toolchain.deployment.weights import check_weights, new_weights
from toolchain.errors import InputError
from toolchain.files import write_file


@grouped
def command(
    subject: Path = argument(
        "MODEL|BLOB",
        "A model of the same architecture that was trained again, or a .bin to check.",
        complete=completion.models,
    ),
    code: Path = option(
        REQUIRED, "Folder of `thimble compile --weights external`.", "--for", unit="DIR"
    ),
    out: Path | None = option(None, "Blob to write, for a model.", "-o", unit="FILE"),
    cmsis_nn: CmsisNnOption = None,
    json: JsonOption = None,
) -> None:
    """Make a blob of a model's weights for existing code, or check a blob.

    The code in DIR takes the weights of any model of the same architecture, with other weights and
    scales, without new firmware. The model is planned with the options that DIR was compiled with.
    If the code cannot take the weights (other shapes, another quantisation of an input or output),
    nothing is written, and the differences are listed.

    Example: `thimble weights retrained.tflite --for out -o new.bin`; `thimble weights new.bin
    --for out` checks it.
    """
    if subject.suffix == ".bin":
        if out is not None:
            raise InputError(f"{subject} is a blob, which is checked: leave out --out")
        fields = check_weights(subject, code)
    else:
        if out is None:
            raise InputError(
                f"{subject} is taken for a model, since the name of a blob ends in .bin: --out is "
                "missing, the blob to write, as in -o new.bin"
            )
        with progress() as step:
            data = new_weights(subject, code, cmsis_nn, step)
        write_file(out, data)
        fields = check_weights(out, code)
    if not tell_json(json, fields):
        return
    said = f"{fields['size_bytes']:,} bytes, constants {fields['content']}, by {fields['version']}"
    written = f"written to {out}" if out else f"in {subject}"
    output_console().print(
        f"The code in {code} takes these weights: {said}; {written}", markup=False
    )
