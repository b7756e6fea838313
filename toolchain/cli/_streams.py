"""Names of the standard streams in messages."""

STANDARD_OUTPUT = "the standard output"
