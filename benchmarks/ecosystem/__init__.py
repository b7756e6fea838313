"""Models made with the ecosystem's own tools, to try the compiler on: see `make.py`."""
