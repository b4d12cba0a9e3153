"""How long hosts are left alone: the gap in force, joined hosts with one clock, caps on public addresses.

`retry_after` is the stable public function; all else is imported from the modules.
"""

from crawl.politeness.clock import retry_after

__all__ = ["retry_after"]
