"""Which links a page has and how each is written.

What always holds: a link's `href`, resolved against its page (or its `<base>`), without fragment and
`utm_*`, is its `target`; ordinary pages link only to what stays, apart from the links they must have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tests.web.dice import Dice
from tests.web.model import Kind, Link, Must, Resource
from tests.web.words import phrase

if TYPE_CHECKING:
    from tests.web.grow import Web

__all__ = ["of", "relative"]

_UTM = ("utm_source=feed", "utm_source=mail&utm_medium=email", "utm_campaign=spring")


def of(web: Web, resource: Resource) -> tuple[Link, ...]:
    """All links that the page ever has, in document order: those it must have among some chosen by chance."""
    source = web.origin_of(resource)
    dice = Dice(web.seed, "links", source.host.name, source.path)
    wanted = list(source.must)
    if source.kind is Kind.PAGE and not source.frameset and not any(must.via == "refresh" for must in wanted):
        for target in _chosen(web, source, dice):
            wanted.insert(dice.below(len(wanted) + 1), Must(target=target))
    return tuple(_written(web, source, must, dice) for must in wanted)


def _chosen(web: Web, source: Resource, dice: Dice) -> list[str]:
    """Identities of pages that this one happens to link to: some of its host, few of others."""
    own = source.host.pages
    targets = [dice.early(own).url for _ in range(5 + dice.below(16))]
    if len(web.hosts) > 1:
        for _ in range(dice.below(4)):
            other = dice.early(web.hosts)
            targets.append(other.pages[0].url if dice.chance(0.5) else dice.early(other.pages).url)
    return targets


def _written(web: Web, source: Resource, must: Must, dice: Dice) -> Link:
    href = _spelled(web, source, must.target, dice)
    anchor = phrase(source.language, 1 + dice.below(4), web.seed, "anchor", source.host.name, dice.random())
    if dice.chance(0.03):
        anchor += " & Co <1>"
    return Link(target=must.target, href=href, via=must.via, anchor=anchor, rel=must.rel)


def _spelled(web: Web, source: Resource, target: str, dice: Dice) -> str:
    """One of the ways to write a link to `target`. Always rolls the same number of dice."""
    features = web.features
    style, odd, oddity, utm, tag = (dice.random() for _ in range(5))
    scheme, rest = target.split("://", 1)
    authority, path = rest.split("/", 1)
    path = "/" + path
    unusual = odd < features.spellings
    if unusual:
        path = _unusual(path, oddity, source.charset == "utf-8")
    if utm < features.tracking:
        path += ("&" if "?" in path else "?") + _UTM[int(tag * len(_UTM))]
    if unusual and 0.5 < oddity < 0.8:
        path += f"#part-{int(oddity * 1000)}"
    if unusual and oddity > 0.95:
        authority, scheme = authority.upper(), "HTTP"
    same_host = urlsplit(source.url).netloc == urlsplit(target).netloc
    if source.absolute or style > (0.85 if same_host else 0.1):
        return f"{scheme}://{authority}{path}"
    if not same_host or style > 0.8:
        return f"//{authority}{path}"
    if style > 0.35:
        return path
    return relative(urlsplit(source.base or source.url).path, path)


def _unusual(path: str, oddity: float, unicode_too: bool) -> str:
    """The same path (and query) in an unusual but equivalent spelling."""
    bare, mark, query = path.partition("?")
    if oddity < 0.1:
        bare = bare.replace("-", "%2D", 1)  # an unreserved character escaped: RFC 3986, 6.2.2.2
    elif oddity < 0.2:
        bare = "/." + bare
    elif oddity < 0.3:
        bare = "/nowhere/.." + bare
    elif oddity < 0.4 and unicode_too:
        bare = unquote(bare)
    elif oddity < 0.5:
        bare = "".join(_lower_escapes(bare))
    return bare + mark + query


def _lower_escapes(path: str) -> list[str]:
    """The path with its escapes in lower case, in pieces."""
    first, *others = path.split("%")
    return [first, *(f"%{piece[:2].lower()}{piece[2:]}" for piece in others)]


def relative(base: str, path: str) -> str:
    """`path` (with query and fragment) written relative to the folder of the path `base`."""
    folders = base.split("/")[1:-1]
    bare = path.split("?")[0].split("#")[0]
    tail = path[len(bare) :]
    parts = bare.split("/")[1:]
    shared = 0
    while shared < min(len(folders), len(parts) - 1) and folders[shared] == parts[shared]:
        shared += 1
    written = "../" * (len(folders) - shared) + "/".join(parts[shared:])
    return (written or "./") + tail
