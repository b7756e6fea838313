"""The stages of the planner that use more than one package; see `toolchain/planner.py`."""
