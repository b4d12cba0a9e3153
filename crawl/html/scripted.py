"""Signs that scripts make a page's text: what whoever renders pages looks at first.

What always holds: a sign is what stands in the markup, in few words of ours, never a judgement. It renders
nothing and knows no tree (crawl.html).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["NOSCRIPT", "asks_for_scripts", "of_element", "of_script"]

#: a noscript that tells its reader to switch scripts on
NOSCRIPT: Final = "noscript"

#: ids of the element into which a framework draws, on a child of the body
_IDS: Final = {
    name: f"id={name}"
    for name in ("root", "app", "__next", "__nuxt", "___gatsby", "q-app", "svelte", "main-app", "react-root")
}
#: attributes that frameworks set on the outermost elements
_ATTRIBUTES: Final = frozenset(
    {
        *("ng-app", "data-ng-app", "ng-version", "data-reactroot", "data-server-rendered", "data-v-app"),
        *("q:container", "data-sveltekit-preload-data", "data-turbo", "data-page"),
    }
)
_TAGS: Final = frozenset({"app-root", "ember-app"})
#: ids of scripts that carry a page's data
_DATA: Final = {name: name for name in ("__NEXT_DATA__", "__NUXT_DATA__", "ng-state", "initial-state")}


def of_element(tag: str, attributes: Mapping[str, str | None]) -> Iterable[str]:
    """Signs of one of the outermost elements of a page."""
    if tag in _TAGS:
        yield tag
    if (name := attributes.get("id")) in _IDS:
        yield _IDS[name or ""]
    for attribute in attributes:
        if attribute in _ATTRIBUTES:
            yield attribute


def of_script(attributes: Mapping[str, str | None]) -> str | None:
    """The sign of a script that carries a page's data."""
    return _DATA.get(attributes.get("id") or "")


def asks_for_scripts(text: str) -> bool:
    """Whether a noscript says that without scripts there is nothing to see."""
    return "javascript" in text[:1_000].lower()
