"""Image resizing."""
