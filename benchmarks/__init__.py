"""Measurements: each module is one run that prints a table and writes JSON."""
