"""Boards: build firmware, flash it, emulate it, and talk to it over a serial line."""
