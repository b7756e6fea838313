"""Max and average pools."""
