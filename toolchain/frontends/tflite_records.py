"""A TFLite file as checked, plain records, for who needs the file and not the Graph."""

from toolchain.frontends._tflite_file import FileModel, FileOp, FileTensor, read_file
from toolchain.frontends._tflite_refusals import QUANTISE, of_model

__all__ = ["QUANTISE", "FileModel", "FileOp", "FileTensor", "of_model", "read_file"]
