"""The version of Thimble: `pyproject.toml` reads it here."""

DISTRIBUTION = "thimble-nn"
"""The name of the package as pip installs it."""
__version__ = "0.1.0"
DATE = "2026-11-28"
"""The date of this version, for packages that tell one: files depend on no clock."""
