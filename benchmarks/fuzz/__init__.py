"""The fuzzer: mutated model files, split networks and serial frames, each case by its number."""
