"""Thimble: an int8 neural network as microcontroller firmware, in the least RAM that a search
finds.

The Python interface: `compile_torch`, `compile_keras` (from a training script), `load_model`,
`plan_model`, `compile_model`, `compile_shared`,
`export_models`, `deployed`, `profile_folder`, `verify_model`, `measure_accuracy`, `evaluate` (for a
search among architectures).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolchain.version import __version__

if TYPE_CHECKING:
    from toolchain.accuracy.run.measure import measure_accuracy
    from toolchain.accuracy.run.result import Accuracy
    from toolchain.deployment.compile import (
        Compiled,
        compile_library,
        compile_model,
        compile_shared,
    )
    from toolchain.deployment.profile import Profile
    from toolchain.deployment.profiling import profile_folder
    from toolchain.deployment.run import Deployment, Inference, deployed
    from toolchain.deployment.training import Built, compile_keras, compile_torch
    from toolchain.deployment.verification import Verification, verify_model
    from toolchain.export.exporting import Exported, export_models
    from toolchain.frontends import load_model
    from toolchain.memory.firmware_size import check_fit
    from toolchain.ops.preference import Preference
    from toolchain.planner import plan_model
    from toolchain.planning.options import PlanOptions
    from toolchain.preprocess.samples import Scaling
    from toolchain.sweep.candidates import Estimate, evaluate

_HOMES = {
    "Accuracy": "accuracy.run.result",
    "Built": "deployment.training",
    "Compiled": "deployment.compile",
    "Deployment": "deployment.run",
    "Estimate": "sweep.candidates",
    "Exported": "export.exporting",
    "Inference": "deployment.run",
    "PlanOptions": "planner",
    "Preference": "ops.preference",
    "Profile": "deployment.profile",
    "Scaling": "preprocess.samples",
    "Verification": "deployment.verification",
    "check_fit": "memory.firmware_size",
    "compile_keras": "deployment.training",
    "compile_library": "deployment.compile",
    "compile_model": "deployment.compile",
    "compile_shared": "deployment.compile",
    "compile_torch": "deployment.training",
    "deployed": "deployment.run",
    "evaluate": "sweep.candidates",
    "export_models": "export.exporting",
    "load_model": "frontends",
    "measure_accuracy": "accuracy.run.measure",
    "plan_model": "planner",
    "profile_folder": "deployment.profiling",
    "verify_model": "deployment.verification",
}

__all__ = [
    "Accuracy",
    "Built",
    "Compiled",
    "Deployment",
    "Estimate",
    "Exported",
    "Inference",
    "PlanOptions",
    "Preference",
    "Profile",
    "Scaling",
    "Verification",
    "__version__",
    "check_fit",
    "compile_keras",
    "compile_library",
    "compile_model",
    "compile_shared",
    "compile_torch",
    "deployed",
    "evaluate",
    "export_models",
    "load_model",
    "measure_accuracy",
    "plan_model",
    "profile_folder",
    "verify_model",
]


if not TYPE_CHECKING:  # else any name would be known to type checkers

    def __getattr__(name: str) -> object:
        """Load a name from its module when it is first used: `import toolchain` is quick."""
        import importlib

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

    def __dir__() -> list[str]:
        return sorted(__all__)
