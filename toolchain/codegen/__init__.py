"""Plan to C. `generate` gives the text of a model, `library` a folder that others can build."""

from toolchain.codegen.generate import generate, runtime_tree

__all__ = ["generate", "runtime_tree"]
