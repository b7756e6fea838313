"""Sums, means, extremes and ranks along axes."""
