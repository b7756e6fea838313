"""Boards on a bench, and the pytest plugin that runs tests on them."""
