"""CMSIS-NN's fully connected layers (5.0.0): a module for each C function; `layers` holds what they
share.
"""
