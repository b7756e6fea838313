"""cost room."""
