"""Recurrent layers, which carry state from one run to the next."""
