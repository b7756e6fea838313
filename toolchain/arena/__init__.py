"""Allocators: blocks with lifetimes in, offsets out. Each public module holds one `ALLOCATOR`."""
