"""A model file compiled into a folder; what is in the folder; running, verifying, profiling it."""
