"""Operators of two operands, element by element, broadcasting."""
