"""Energy of an inference: recordings of power, and the runs that show in them.

`recording` reads what a power analyser exported, `lpm01a` drives ST's, `recorder` is what a visit
asks of either; `energy` finds the runs in a recording.
"""
