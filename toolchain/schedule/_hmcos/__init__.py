"""The hierarchy behind `hmcos`: sequences, and groups of them."""
