"""What messages call the standard streams."""

STANDARD_OUTPUT = "the standard output"
