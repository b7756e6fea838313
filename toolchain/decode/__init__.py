"""`--decode`: boxes of a detector whose file ends with raw heads."""
