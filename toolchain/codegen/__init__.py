"""Turns a plan into C.

`generate` writes the text of one model; `library` makes a folder that another project can build.
`writer` renders operators; `calls` represents a kernel's calls as trees, and `operators` lets the
blocks of one operator share a C function. `bounds` proves that no call touches bytes beyond its
operands. `steps` is the table by which a run can
be made in steps. `header`, `memory_map`, `constants`, `arrays`, `layout`, `names`, `places` and
`environment` are the smaller parts of the text.
"""

from toolchain.codegen.blob import HEADER_BYTES
from toolchain.codegen.generate import constant_bytes, copied_bytes, fetched_bytes, generate
from toolchain.codegen.library import library_files, write_library
from toolchain.codegen.steps import Costs

__all__ = [
    "HEADER_BYTES",
    "Costs",
    "constant_bytes",
    "copied_bytes",
    "fetched_bytes",
    "generate",
    "library_files",
    "write_library",
]
