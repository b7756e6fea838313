"""One module for each subject, with a constant FIGURES."""
