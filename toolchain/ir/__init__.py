"""The frozen values that flow through the toolchain."""

from toolchain.ir.arena import ArenaPlan, ArenaProblem, Block, Placement, SharedPair
from toolchain.ir.boundary import Boundary, End
from toolchain.ir.graph import Attributes, Graph, Op, State
from toolchain.ir.memory import Buffer, Member, MemoryProblem, Overlap
from toolchain.ir.plan import Plan, PlannedOp
from toolchain.ir.schedule import Schedule
from toolchain.ir.sources import Sources
from toolchain.ir.tensor import DType, Quantisation, Tensor

__all__ = [
    "ArenaPlan",
    "ArenaProblem",
    "Attributes",
    "Block",
    "Boundary",
    "Buffer",
    "DType",
    "End",
    "Graph",
    "Member",
    "MemoryProblem",
    "Op",
    "Overlap",
    "Placement",
    "Plan",
    "PlannedOp",
    "Quantisation",
    "Schedule",
    "SharedPair",
    "Sources",
    "State",
    "Tensor",
]
