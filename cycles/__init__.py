"""Doing a crawl: rounds on a cluster, and the commands. The only package that knows both `crawl` and `lake`.

What always holds: a round is one transaction. Killed at any line it is resumed by the next run: before the
seal finished work is adopted and the rest done again; after the seal nothing is fetched or computed any more,
the round is only rolled forward.
"""
