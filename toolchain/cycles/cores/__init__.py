"""One timing model a file."""
