"""Budgets of searches, counted in work: equal input gives an equal result, however busy or fast the
machine is.
"""

from toolchain.search.solver import solve
from toolchain.search.stopwatch import Stopwatch
from toolchain.search.work import Work

__all__ = ["Stopwatch", "Work", "solve"]
