"""CMSIS-NN's pools (5.0.0): a module for each C function; `pools` holds what they share."""
