"""Numbers as people read them."""

from __future__ import annotations


def size(size_bytes: int) -> str:
    """Bytes with thousands separators, and KiB beside them from 10 KiB on."""
    plain = f"{size_bytes:,} B"
    return plain if size_bytes < 10240 else f"{plain} ({size_bytes / 1024:.1f} KiB)"


def share(part: float, whole: float) -> str:
    """A percentage; a dash where there is no whole."""
    return f"{100 * part / whole:.1f}%" if whole else "-"


def shape(dimensions: tuple[int, ...]) -> str:
    return "x".join(str(d) for d in dimensions) or "scalar"
