"""`python -m toolchain.cli`."""

from toolchain.cli import main

main()
