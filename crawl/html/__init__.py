"""What a page says: encoding, text, links, directives, language. All of it from bytes, nothing fetched.

`read` and what it gives, `Page`, are stable public names; all else is imported from the modules.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawl.html.page import Page
    from crawl.html.reader import read

__all__ = ["Page", "read"]


def __getattr__(name: str) -> object:
    """The public names, when first asked for: they bring an HTML parser along, which a plan never needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from crawl.html import reader

    return getattr(reader, name)
