"""Control flow that depends on data: operators that hold graphs."""
