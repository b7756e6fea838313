"""Operators that move bytes and compute nothing.

There is one kind per file. `copies` describes any of them as strided copies, `kernels` turns these
into calls of `thimble_copy_nd`, and `copy_overlaps` says where an output may lie over its input.
`joining` serves concat, pack, split and unpack; `depth_blocks` depth_to_space and space_to_depth;
`batch_blocks` the two batch kinds; `slicing` resolves the masks of STRIDED_SLICE. Where an output
is a run of its input's bytes, the operator is a view and has no code.
"""
