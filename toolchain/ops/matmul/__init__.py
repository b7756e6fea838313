"""Fully connected layers and products of matrices."""
