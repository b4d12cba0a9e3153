"""Rounds, one after another: each one transaction of the lake, and upkeep between them."""
