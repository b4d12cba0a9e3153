"""robots.txt (RFC 9309): its grammar, which rule decides, and the copies a lake keeps.

`parse`, `Rules` and `Verdict` are stable public names; all else is imported from the modules.
"""

from crawl.robots.rules import Rules, Verdict, parse

__all__ = ["Rules", "Verdict", "parse"]
