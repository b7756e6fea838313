"""The ONNX front end: `file` checks the file, `importer` builds the Graph, `node` presents each
operator to its reader.
"""

from toolchain.frontends.onnx.reader import FRONT_END, READ_AWAY, read, read_traced

__all__ = ["FRONT_END", "READ_AWAY", "read", "read_traced"]
