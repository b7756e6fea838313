"""Operators that only move bytes."""
