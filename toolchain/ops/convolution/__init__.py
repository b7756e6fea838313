"""Convolutions: one kind per file; kernels, packing, costs beside them."""
