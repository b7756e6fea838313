"""Figures of the documents: run by command, kept as data, rendered as tables and plots."""
