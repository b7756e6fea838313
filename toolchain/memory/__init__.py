"""Which tensors share a buffer, where each lies in the arena, and what each bank of RAM holds."""
