"""Time kernels on boards one by one, tune plans by the results, and check predictions against
them.
"""
