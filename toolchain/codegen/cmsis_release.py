"""Kernels for another release of CMSIS-NN than the pinned one, whose functions take more.

Calls are written for 5.0.0. The headers of the folder in use say what its functions take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from toolchain.errors import MissingToolError
from toolchain.kernels import cmsis_nn
from toolchain.kernels.c_sources import CTree, parameter_names, parameters_of
from toolchain.ops.kernel import NULL, Argument, Call, Kernel

_NEW: Mapping[str, Argument] = {"upscale_dims": NULL}
"""Parameters that came after 5.0.0, and what leaves them without effect."""
_OTHER_SCRATCH = "conv_params"
"""In the parameters of a function's `get_buffer_size`: since 6.0.0 it uses other scratch."""
_BIAS = "cmsis_nn_bias_data"
"""Since 6.0.0 the type of the bias of `arm_convolve_s16`, which then needs scratch, too."""


def fitted(kernel: Kernel, folder: Path) -> Kernel:
    """The kernel with the arguments that the CMSIS-NN in `folder` declares.

    Raises MissingToolError for a function that takes what Thimble cannot give it.
    """
    tree = cmsis_nn.tree(folder)
    calls = tuple(_fitted(call, tree, folder) for call in kernel.calls)
    return kernel if calls == kernel.calls else replace(kernel, calls=calls)


def _fitted(call: Call, tree: CTree, folder: Path) -> Call:
    names = parameter_names(call.function, tree)
    if not names:  # one of ours, or gone, which the search for its source will report
        return call
    new = [name for name in names if name in _NEW]
    same = len(names) - len(new) == len(call.arguments)
    if not same or _computes_otherwise(call.function, tree):
        raise MissingToolError(
            f"{call.function} in {folder} takes other arguments or scratch than in CMSIS-NN "
            "5.0.0; leave out --cmsis-nn to use the pinned release, or take --kernels thimble"
        )
    given = iter(call.arguments.items())
    arguments = dict((name, _NEW[name]) if name in new else next(given) for name in names)
    return replace(call, arguments=arguments) if new else call


def _computes_otherwise(function: str, tree: CTree) -> bool:
    if any(_BIAS in one for one in parameters_of(function, tree) or ()):
        return True
    sizes = parameters_of(f"{function}_get_buffer_size", tree) or ()
    return any(_OTHER_SCRATCH in one for one in sizes)
