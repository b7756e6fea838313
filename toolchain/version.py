"""The version of Thimble: `pyproject.toml` reads it here."""

__version__ = "0.1.0"
