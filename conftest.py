"""What holds for every run of pytest here: tests/ and hil/."""

from __future__ import annotations

import gc
import os
import sys

from _pytest.assertion.rewrite import AssertionRewritingHook

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Before NumPy is there. The second thread of a product of matrices waits for more of them by
spinning, and takes the processor from the other process that runs tests."""

for finder in sys.meta_path:
    if isinstance(finder, AssertionRewritingHook):
        # pytest marks the package of a plugin for the rewriting of asserts: here some 600 modules,
        # which each process would look for and read by pytest's own importer. They hold no tests.
        finder._must_rewrite.discard("toolchain")
        finder._marked_for_rewrite_cache.clear()


def pytest_collection_finish() -> None:
    """What is there stays to the end: modules and thousands of tests. No collection looks at it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
