"""Functions of one operand, element by element."""
