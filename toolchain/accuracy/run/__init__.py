"""Samples run in the float model, on the reference and on a board."""
