"""Pipelines of Coral Edge TPUs: a model cut into stages, one stick each.

`pipeline.py` joins `model/` (read and weigh), `plan/`, `run/` (split, compile, run, simulate) and
`show/`. `docs/architecture.md` follows one model through them, file by file.
"""
