"""Names of objectives and of baselines, as the command line spells them."""

from __future__ import annotations

from toolchain.errors import InputError

OBJECTIVES = ("params", "spill", "comm")
BASELINES = ("greedy", "contiguous")
DEFAULT = "period"
RATE_OBJECTIVES = ("mean", "worst")
"""Of latency, where models have rates of requests; the first is the default."""
ORDERS = ("params,comm", "params,spill,comm", "spill,params,comm")
"""The three orders of the paper: (1)->(3), (1)->(2)->(3), (2)->(1)->(3)."""


def parse(text: str) -> tuple[str, ...]:
    """A list of objectives in order of priority. Raises InputError for anything else."""
    names = tuple(name.strip() for name in text.split(","))
    if names in ((DEFAULT,), *((baseline,) for baseline in BASELINES)):
        return names
    for name in names:
        if name in RATE_OBJECTIVES:
            raise InputError(
                f"objective {name!r} is of latency under a rate of requests: add --rate"
            )
        if name in (DEFAULT, *BASELINES):
            raise InputError(f"objective {name!r} stands alone; it cannot be part of a list")
        if name not in OBJECTIVES:
            known = ", ".join((*OBJECTIVES, DEFAULT, *BASELINES))
            raise InputError(f"there is no objective {name!r}; there are {known}")
    if len(set(names)) != len(names):
        raise InputError(f"an objective stands twice in {text!r}")
    return names
