# Thimble: `make demo` shows it, `make test` checks it, `make quick` checks most of it in less than two.
# All set up what is missing first.

PYTHON := .venv/bin/python
LITERT := tests/pure/test_elementwise.py tests/pure/test_int4.py tests/pure/test_legacy_uint8.py \
	tests/pure/test_ops_litert.py
HIL := toolchain/bench/hil
EXAMPLES := tests/pure/test_arena.py tests/pure/test_exact_allocator.py
# Tests start many processes of Python, and each would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
# `lint` takes one processor, the tests two: side by side none is idle.
SIDE_BY_SIDE := $(MAKE) --no-print-directory --jobs 3
# Of their own: a makefile that a test runs is no part of this make.
PYTEST := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(PYTHON) -m pytest
# One more than there are processors: tests wait for cables, emulators and processes that end.
WORKERS := $(shell expr $$(nproc) + 1)
C_FILES := $(shell git ls-files '*.c' '*.h' ':!tests/goldens' 2>/dev/null)

.PHONY: help setup demo test test-long quick tests quick-tests lint docs figures release format clean

help:
	@echo "make setup   a virtual environment, compiler, QEMU and its plugin, CMSIS-NN; quick when nothing is missing"
	@echo "make demo    the bundled model, compiled for an STM32F405 and run in QEMU on real samples"
	@echo "make test    lint, types, import contract, the site, the tests, the bench of three boards in QEMU"
	@echo "make test-long  what make test samples, in full: all boards, models and benchmarks (docs/tests.md)"
	@echo "make quick   lint, types, import contract, and the tests in Python that are quick (a minute and a half)"
	@echo "make docs    the site of the documentation in build/site; a link that leads nowhere is an error"
	@echo "make figures  run the figures of README and docs that are not of this commit, write the pages (docs/figures.md)"
	@echo "make release wheel and sdist in dist/, checked, installed and tried; says what a release still lacks"
	@echo "make format  lay out Python and C"
	@echo "make clean   remove what was built (not .venv)"

setup:
	@scripts/setup.sh

demo: setup
	@$(PYTHON) examples/digits/demo.py

lint: setup
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m ruff check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@$(if $(C_FILES),.venv/bin/clang-format --dry-run -Werror $(C_FILES))

test:
	@$(SIDE_BY_SIDE) lint docs tests
	@$(PYTEST) -q --numprocesses auto $(HIL) --bench $(HIL)/bench-qemu.toml

tests: setup
	@$(PYTEST) --numprocesses $(WORKERS) --dist worksteal -m "not long"

test-long: setup
	@$(PYTEST) --numprocesses auto --dist worksteal -m long
	@$(PYTEST) -q --numprocesses auto --litert-runs 300 $(LITERT)
	@$(PYTEST) -q --numprocesses auto --hypothesis-profile long $(EXAMPLES)

quick:
	@$(SIDE_BY_SIDE) lint quick-tests
	@echo "Left out (make test runs it): tests/host_c, tests/qemu, tests/models, $(HIL); and marked slow:"
	@grep -c "pytest.mark.slow" tests/pure/*.py | grep -v ":0$$" | sed "s/^/  /"

quick-tests: setup
	@$(PYTEST) -q --numprocesses 2 --dist worksteal -m "not slow and not long" \
		--durations 5 --durations-min 3 tests/pure

# Not --quiet: that drops the warnings before they are counted as errors.
docs: setup
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(PYTHON) -m mkdocs build
	@echo "build/site/index.html"

figures: setup
	@$(PYTHON) -m benchmarks.figures $(FIGURES)

release: setup
	@$(PYTHON) scripts/release.py

format: setup
	@$(PYTHON) -m ruff check --fix-only .
	@$(PYTHON) -m ruff format .
	@$(if $(C_FILES),.venv/bin/clang-format -i $(C_FILES))

clean:
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
