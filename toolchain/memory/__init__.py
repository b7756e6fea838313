"""Which tensors share a buffer, where each lies in the arena, and which bank of RAM holds what."""
