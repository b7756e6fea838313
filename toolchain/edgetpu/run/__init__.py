"""The stages as files, compiled, on devices, simulated, as a C program."""
