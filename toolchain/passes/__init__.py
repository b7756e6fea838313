"""passes room."""
