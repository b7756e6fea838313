"""CMSIS-NN's pools (5.0.0): `pools` holds what they share."""
