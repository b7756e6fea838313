"""Schedulers: memory problem in, order out. Each public module holds one `SCHEDULER`."""
