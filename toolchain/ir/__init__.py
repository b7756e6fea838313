"""The immutable values that flow through the toolchain."""

from toolchain.ir.about import NOTHING_KNOWN, About, Labels
from toolchain.ir.arena import ArenaPart, ArenaPlan, ArenaProblem, Block, Placement, SharedPair
from toolchain.ir.banks import Bank, Spread
from toolchain.ir.boundary import Boundary, End
from toolchain.ir.external import BLOB_ALIGNMENT_BYTES, External
from toolchain.ir.graph import Attributes, Graph, Op, Pushed, State
from toolchain.ir.memory import Buffer, Member, MemoryProblem, Overlap
from toolchain.ir.progress import Access, LiveRun
from toolchain.ir.removed import NOTHING_REMOVED, RemovedChannels
from toolchain.ir.schedule import Schedule
from toolchain.ir.sources import CodeOperator, ExternalWeights, Sources
from toolchain.ir.stack_need import StackNeed
from toolchain.ir.status import Status, meaning_of
from toolchain.ir.tensor import DType, Quantisation, Serial, Tensor

__all__ = [
    "BLOB_ALIGNMENT_BYTES",
    "NOTHING_KNOWN",
    "NOTHING_REMOVED",
    "About",
    "Access",
    "ArenaPart",
    "ArenaPlan",
    "ArenaProblem",
    "Attributes",
    "Bank",
    "Block",
    "Boundary",
    "Buffer",
    "CodeOperator",
    "DType",
    "End",
    "External",
    "ExternalWeights",
    "Graph",
    "Labels",
    "LiveRun",
    "Member",
    "MemoryProblem",
    "Op",
    "Overlap",
    "Placement",
    "Pushed",
    "Quantisation",
    "RemovedChannels",
    "Schedule",
    "Serial",
    "SharedPair",
    "Sources",
    "Spread",
    "StackNeed",
    "State",
    "Status",
    "Tensor",
    "meaning_of",
]
