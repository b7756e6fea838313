"""Kernels timed on boards, one by one; measurements that plans are weighed by, and checked by."""
