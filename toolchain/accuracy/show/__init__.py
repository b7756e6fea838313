"""The figures for people and for programs."""
