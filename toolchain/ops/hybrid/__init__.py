"""Products of float inputs and int8 weights: what TFLite's dynamic-range quantisation leaves.

LiteRT quantises an input when it is known (`arithmetic.dynamic_range`), sums in int32, and scales
the sums in float32. Each is a form of the kind of the float product.
"""
