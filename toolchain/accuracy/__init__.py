"""How right a model is on labelled data: in float, on its reference runtime, and on a board.

`metrics` holds the figures, `samples` reads data and labels, `run` gives the samples to each
runtime, `show` makes tables and JSON.
"""
