"""Plan to C. `generate` gives the text of a model, `library` a folder that others can build."""

from toolchain.codegen.generate import constant_bytes, generate
from toolchain.codegen.library import library_files, write_library

__all__ = ["constant_bytes", "generate", "library_files", "write_library"]
