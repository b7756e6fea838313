"""From what was executed to cycles: timing of cores and of their memories. Knows no networks."""
