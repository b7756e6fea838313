"""Recurrent layers, which keep a state from one run to the next.

Kinds: `lstm` and `svdf` (with an int16 state in `svdf_s16`, an int8 state in `svdf_s8`). Each file
holds its reader and its kernel.
"""
