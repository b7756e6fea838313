"""Pipelines of Coral Edge TPUs: a model cut into stages, one stick each.

`pipeline.py` joins the parts: read -> plan -> split -> compile -> run or simulate.
"""
