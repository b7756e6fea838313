"""How many operators the calls of subgraphs become: counted on the graph of calls before any is
read. Loops that are unrolled are counted as they are (`frontends.written_out`).

A file of some kilobytes can call each subgraph several times from the one before it, or turn loops
inside of loops, and so stand for more operators than any memory holds.
"""

from __future__ import annotations

from toolchain.frontends.tflite.control import called_by
from toolchain.frontends.tflite.file import FileModel, FileOp
from toolchain.frontends.written_out import TooManyError

MOST_CALLED = 20_000
"""Operators that calls become, where each branch and each body of a loop is counted once."""
MOST_DEPTH = 32
"""Calls within calls."""
_MOST_SHOWN = 10**15


def check_calls(model: FileModel) -> None:
    """Check the calls of a file. Raises InputError, naming operator and subgraph, where a subgraph
    calls itself, calls nest deeper than MOST_DEPTH, or become more than MOST_CALLED operators.
    """
    counted: dict[int, tuple[int, int]] = {}
    """For each subgraph, by number: the operators that one call becomes, and how deep calls
    nest."""
    calls = [(op, number) for op in model.ops for number in _calls(op, model)]
    for op, number in calls:
        if number not in counted:
            _count(number, op, model, counted)
    whole = sum(counted[number][0] for _, number in calls)
    if whole > MOST_CALLED:
        op, number = max(calls, key=lambda call: counted[call[1]][0])
        count = counted[number][0]
        shown = f"{count:,}" if count < _MOST_SHOWN else "more than 10^15"
        raise TooManyError(
            f"{op} calls subgraph {number}, which is {shown} operators once every call in it is "
            f"written out; all calls of a model may be {MOST_CALLED:,} at most: export it with "
            "fewer branches inside of branches"
        )


def _count(
    first: int, caller: FileOp, model: FileModel, counted: dict[int, tuple[int, int]]
) -> None:
    """Fill in `counted` for a subgraph and all that it calls, without recursion."""
    open_calls: dict[int, list[int]] = {}
    """Subgraphs that are being counted, each with those that it calls, in the order of the
    calls."""
    entered: int | None = first
    while entered is not None or open_calls:
        if entered is not None:
            ops = model.others[entered - 1].ops
            open_calls[entered] = [n for op in ops for n in _calls(op, model)]
        number = next(reversed(open_calls))
        called = open_calls[number]
        entered = next((n for n in called if n not in counted), None)
        if entered in open_calls:
            raise TooManyError(
                f"{caller} calls subgraph {first}, and so subgraph {entered}, which calls itself"
            )
        if entered is None:
            inner = [counted[n] for n in open_calls.pop(number)]
            size = len(model.others[number - 1].ops) + sum(count for count, _ in inner)
            counted[number] = size, 1 + max((depth for _, depth in inner), default=0)
            if counted[number][1] > MOST_DEPTH:
                raise TooManyError(
                    f"{caller} calls subgraph {first}, where calls nest deeper than {MOST_DEPTH} "
                    f"(subgraph {number}): export the model with fewer calls inside of calls"
                )


def _calls(op: FileOp, model: FileModel) -> list[int]:
    """Numbers of the subgraphs that an operator calls and the file has; others are reported where
    the operator is read."""
    if op.options is None:
        return []
    return [number for number in called_by(op) if 0 < number <= len(model.others)]
