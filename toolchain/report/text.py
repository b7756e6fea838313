"""Numbers formatted for people."""

from __future__ import annotations

from toolchain.ir import DType, End


def size(size_bytes: int) -> str:
    """Bytes with thousands separators, followed by KiB or MiB from 10 KiB on."""
    plain = f"{size_bytes:,} B"
    if size_bytes < 10 << 10:
        return plain
    if size_bytes < 10 << 20:
        return f"{plain} ({size_bytes / 1024:.1f} KiB)"
    return f"{plain} ({size_bytes / (1 << 20):.1f} MiB)"


def round_size(size_bytes: int) -> str:
    """A memory's size in KiB or MiB, for a narrow column."""
    if size_bytes < 10 << 20:
        return f"{size_bytes / 1024:g} KiB"
    return f"{size_bytes / (1 << 20):g} MiB"


def share(part: float, whole: float) -> str:
    """A percentage; a dash if the whole is 0."""
    return f"{100 * part / whole:.1f}%" if whole else "-"


def shape(dimensions: tuple[int, ...]) -> str:
    """A shape as text: `1x8x8x16`, or `scalar`."""
    return "x".join(str(d) for d in dimensions) or "scalar"


def boundary_line(end: End) -> str:
    """One sentence on what the caller converts at one input or output of the model."""
    tensor, boundary = end.tensor, end.boundary
    if boundary is None:
        return f"{tensor.name}: {tensor.dtype.value}, as in the model file."
    form = f"{boundary.dtype.value}[{shape(end.model_shape)}]"
    stored = f"{tensor.dtype.value}[{shape(tensor.shape)}]"
    how = (
        f"real = {tensor.q.scale:g} * (stored - {tensor.q.zero_point})"
        if boundary.dtype is DType.FLOAT32
        else "another layout or zero point"
    )
    return f"{tensor.name}: {form} in the model file, {stored} on the device ({how})."


def operator_name(name: str) -> str:
    """The name in a table: the last part of one that TFLite's converter joined (`a;b;c`), which
    tells fused operators apart. `--json` has it whole.
    """
    return name.rpartition(";")[2] or name
