"""Figures of predictions beside labels, from numbers alone."""
