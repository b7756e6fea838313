"""The stages of the planner that take more than one room: see `toolchain/planner.py`."""
