"""One arena over several memory banks."""
