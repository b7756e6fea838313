"""Predicted latency against measured or traced: for each model and board, each operator's error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.boards import as_target, boards
from toolchain.cost import CostModel
from toolchain.cost.basis import Basis
from toolchain.cost.predicted import predicted_model
from toolchain.deployment.compile import Compiled, compile_model
from toolchain.deployment.measurements import cost_model
from toolchain.deployment.profile import Profile
from toolchain.deployment.profiling import profile_readings, record
from toolchain.errors import DoesNotFitError
from toolchain.files import scratch_folder
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report, silent
from toolchain.report.latency import predict_latency

_RUNS = 3
"""Runs, of which the median counts: the first finds caches empty."""


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of one cost model on one network.

    `total` is its prediction of the whole, in `unit`; where that is instructions, they are held
    against instructions. Errors are shares of the measured count of an operator (predicted /
    measured - 1), and `mean_error` is the mean of their absolute values.
    """

    unit: str
    total: int
    total_error: float
    mean_error: float
    worst_error: float
    worst_operator: str
    measured_share: float


@dataclass(frozen=True)
class Check:
    """`measured`: one inference, in `unit`, on the given basis. `known`: with what the database had
    before this check. `estimated`: by formula alone. `board`: or the chip that it was read as.
    """

    model: str
    board: str
    ran_on: str
    unit: str
    basis: Basis
    measured: int
    known: Accuracy
    estimated: Accuracy


def emulated_boards() -> tuple[str, ...]:
    """The boards that QEMU can run on this machine."""
    return tuple(name for name, board in boards().items() if board.emulator)


def check_model(
    model: Path,
    board: str,
    port: str | None = None,
    cmsis_nn_folder: Path | None = None,
    read_as: Sequence[str] = (),
) -> tuple[Check, ...]:
    """Predict, compile, measure, compare; () if the model does not fit the board.

    Operators stay whole, and constants in flash, of which kept times are. The measurements go to
    the database, after the comparison. `read_as`: names of boards and chips, as which the run on an
    emulated board is read as well; a check for each.
    """
    names = ("", *read_as)
    with scratch_folder() as scratch:
        folder = scratch / "build"
        try:
            whole = PlanOptions(nearly_free=False, copy_constants=False)
            compiled = compile_model(model, board, folder, whole, cmsis_nn_folder)
        except DoesNotFitError:
            return ()
        targets = [as_target(name or board) for name in names]
        known = [
            cost_model(target.name, cmsis_nn_folder)
            if target.name in boards()
            else predicted_model(target)
            for target in targets
        ]
        profiles = profile_readings(folder, names, port, _RUNS)
        for profile in profiles:
            record(profile, folder)
    return tuple(
        _check(compiled, profile, costs, predicted_model(target))
        for profile, costs, target in zip(profiles, known, targets, strict=True)
    )


def _check(compiled: Compiled, profile: Profile, known: CostModel, estimated: CostModel) -> Check:
    counted = compiled.sources.operators
    names = [part.name for part in profile.operators]

    def accuracy(model: CostModel) -> Accuracy:
        latency = predict_latency(compiled.plan, model)
        parts = [(part.count, part.instructions) for part in profile.operators]
        whole, *measured = (
            count if latency.unit == profile.unit else instructions or 0
            for count, instructions in [(profile.total, profile.instructions), *parts]
        )
        predicted = [sum(latency.counts[i] for i in op.numbers) for op in counted]
        errors = [_error(p, m) for p, m in zip(predicted, measured, strict=True)]
        worst = max(range(len(errors)), key=lambda i: abs(errors[i]), default=None)
        return Accuracy(
            unit=latency.unit,
            total=latency.total,
            total_error=_error(latency.total, whole),
            mean_error=sum(map(abs, errors)) / len(errors) if errors else 0.0,
            worst_error=errors[worst] if worst is not None else 0.0,
            worst_operator=names[worst] if worst is not None else "",
            measured_share=latency.measured_share,
        )

    return Check(
        model=compiled.plan.graph.name,
        board=profile.board,
        ran_on=profile.ran_on,
        unit=profile.unit,
        basis=profile.basis,
        measured=profile.total,
        known=accuracy(known),
        estimated=accuracy(estimated),
    )


def check_models(
    models: Sequence[Path],
    board_names: Sequence[str],
    port: str | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = silent,
    read_as: Sequence[str] = (),
) -> tuple[Check, ...]:
    """`check_model` for each model on each board that it fits."""
    checks: list[Check] = []
    for board in board_names:
        for model in models:
            report(f"{model.stem} on {board}", len(checks), len(models) * len(board_names))
            checks += check_model(model, board, port, cmsis_nn_folder, read_as=read_as)
    return tuple(checks)


def _error(predicted: int, measured: int) -> float:
    return predicted / measured - 1 if measured else 0.0
