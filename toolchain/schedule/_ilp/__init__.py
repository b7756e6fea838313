"""Fusion, partition and the integer program behind `ilp`."""
