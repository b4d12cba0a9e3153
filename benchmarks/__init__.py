"""Measurements of whole programs: CPU and memory of every process, on loopback, against a peer where there
is one.

Nothing here is imported by the product. `python -m benchmarks` runs all of it and prints tables.
"""
