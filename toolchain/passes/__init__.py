"""Rewrites that make a graph ready to compile: one pass per file, each a small frozen dataclass."""

from __future__ import annotations

from toolchain.ir import Graph
from toolchain.ops.check import check
from toolchain.passes._pass import Pass, Prepared
from toolchain.passes.absorb_layout import AbsorbLayout
from toolchain.passes.convert_ends import ConvertEnds
from toolchain.passes.fold_constants import FoldConstants
from toolchain.passes.merge_dilations import MergeDilations
from toolchain.passes.merge_pads import MergePads
from toolchain.passes.merge_relus import MergeRelus
from toolchain.passes.merge_reshapes import MergeReshapes
from toolchain.passes.merge_spectra import MergeSpectra
from toolchain.passes.move_conversions import MoveConversions
from toolchain.passes.read_stored import ReadStored
from toolchain.passes.remove_dead_channels import RemoveDeadChannels
from toolchain.passes.remove_dead_ops import RemoveDeadOps
from toolchain.passes.remove_identities import RemoveIdentities
from toolchain.passes.rewrite_nested import RewriteNested

__all__ = ["DEFAULT", "KEEPING_CHANNELS", "Pass", "Prepared", "prepare"]

_INSIDE: tuple[Pass, ...] = (
    RemoveDeadOps(),
    FoldConstants(),
    MoveConversions(),
    ReadStored(),
    RemoveIdentities(),
    MergeDilations(),
    MergeReshapes(),
    MergeRelus(),
    MergePads(),
)
KEEPING_CHANNELS: tuple[Pass, ...] = (
    RewriteNested(_INSIDE),
    RemoveDeadOps(),
    FoldConstants(),
    MoveConversions(),
    ReadStored(),
    ConvertEnds(),
    AbsorbLayout(),
    RemoveIdentities(),
    MergeDilations(),
    MergeReshapes(),
    MergeRelus(),
    MergePads(),
    MergeSpectra(),
)
DEFAULT: tuple[Pass, ...] = (*KEEPING_CHANNELS, RemoveDeadChannels())


def prepare(graph: Graph, pipeline: tuple[Pass, ...] = DEFAULT) -> Prepared:
    """Run the passes in order. The graph is verified before the first and after each."""
    prepared = Prepared(check(graph))
    for step in pipeline:
        prepared = step.run(prepared)
        check(prepared.graph)
    return prepared
