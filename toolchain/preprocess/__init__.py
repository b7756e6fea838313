"""Stages between a sensor and a model's input: features of sound, pixels of a camera, files."""
