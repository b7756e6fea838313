"""What a figure may depend on: paths of the checkout, from the fewest to the most."""

from __future__ import annotations

ORDERS = ("toolchain/ir", "toolchain/schedule", "toolchain/search")
ARENAS = (*ORDERS, "toolchain/arena", "toolchain/memory")
PLANS = (
    *ARENAS,
    "boards",
    "toolchain/boards",
    "toolchain/cost",
    "toolchain/frontends",
    "toolchain/kernels",
    "toolchain/ops",
    "toolchain/partition",
    "toolchain/passes",
    "toolchain/planner.py",
    "toolchain/planning",
)
BUILDS = (
    *PLANS,
    "runtime_c",
    "templates/firmware",
    "templates/model.c.j2",
    "templates/ops",
    "toolchain/codegen",
    "toolchain/device",
)
TRACES = (*BUILDS, "toolchain/cycles", "toolchain/deployment")
VERIFIED = (*TRACES, "toolchain/reference")
GRAPHS = ("toolchain/contact/network.py",)
"""Graphs that benchmarks build."""
PIPELINES = ("toolchain/edgetpu", "toolchain/search")
