"""Executed instructions and the memories behind them, turned into cycles of a core."""
