"""The TFLite front end: `file` checks the file, `reader` builds the Graph."""

from toolchain.frontends.tflite.reader import FRONT_END, READ_AWAY

__all__ = ["FRONT_END", "READ_AWAY"]
