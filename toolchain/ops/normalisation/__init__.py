"""Softmax and normalisations of rows or channels."""
