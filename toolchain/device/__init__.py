"""device room."""
