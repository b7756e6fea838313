"""CMSIS-NN's convolutions (5.0.0): in modules that are named as in the folder above.

`shared` holds what they have in common, `products` what those without columns do. Scratch is what
the functions' `get_buffer_size` return.
"""
