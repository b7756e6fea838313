"""Compile a model file into a folder, read what is in the folder, and run, verify and profile
it.
"""
