"""Which answers are worth their bytes: by the header where that tells enough, else by the first bytes.

What is of a type that nobody reads is refused (`unsupported_type`), and so is what its first bytes show to be
something else than it says (`type_mismatch`); the rest is read as the type that crawl.documents.sniff makes
of it. What always holds: the verdict follows from the settings, the header lines and the first `sniff.HEADER`
bytes, however they arrived. It ends no transfer (crawl.net.exchange asks it and does) and reads no body.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from crawl import policy
from crawl.documents import sniff
from crawl.outcomes import Outcome

__all__ = ["MISMATCH", "UNSUPPORTED", "Screen", "Verdict", "content_type"]

#: reasons of a refusal, and the outcomes they are
UNSUPPORTED: Final = "unsupported_type"
MISMATCH: Final = "type_mismatch"
_OUTCOMES: Final = {UNSUPPORTED: Outcome.UNSUPPORTED_TYPE, MISMATCH: Outcome.TYPE_MISMATCH}
#: what XML without a kind of its own may turn out to be
_XML_KINDS: Final = ("application/xhtml+xml", "application/rss+xml", "application/atom+xml")
#: declared as one of these, a body is that (MIME Sniffing 7, step 1)
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
#: declared types kept with their verdicts
_MOST_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is (media type), and why it is refused; None where it is not."""

    media_type: str
    reason: str | None = None

    @property
    def outcome(self) -> Outcome:
        """What a refused answer of status 200 ends as."""
        return Outcome.OK if self.reason is None else _OUTCOMES[self.reason]


class Screen:
    """Judges answers by the operator's list of types. One serves all requests of a task."""

    def __init__(self, content: policy.Content) -> None:
        self._types = frozenset(content.types)
        self._images = any(kind.startswith("image/") for kind in self._types)
        self._media = any(kind.startswith(("audio/", "video/")) for kind in self._types)
        self._good: dict[str, Verdict] = {}
        self._declared: dict[str | None, Verdict | None] = {}

    def declared(self, value: str | None) -> Verdict | None:
        """The verdict where the header's value alone tells: no byte could make its type one that is read.

        None: the first bytes are needed.
        """
        if value not in self._declared:
            if len(self._declared) >= _MOST_KEPT:
                self._declared.clear()
            self._declared[value] = self._by_type(sniff.supplied(value))
        return self._declared[value]

    def _by_type(self, essence: str) -> Verdict | None:
        main = essence.partition("/")[0]
        if essence in self._types or essence in ("", "*/*", "unknown/unknown", "application/unknown"):
            return None
        if essence in ("text/xml", "application/xml") and not self._types.isdisjoint(_XML_KINDS):
            return None
        if (main == "image" and self._images) or (main in ("audio", "video") and self._media):
            return None  # pictures are taken for what they are (7, step 5)
        return Verdict(essence, UNSUPPORTED)

    def shown(self, value: str | None, lines: str, head: bytes) -> Verdict:
        """The verdict on a body that begins with `head`: its first `sniff.HEADER` bytes, or all there are.

        `value`: of the header Content-Type; `lines`: all header lines, as `exchange.Answer` has them.
        """
        essence = sniff.supplied(value)
        if essence in _PAGES:  # as nearly always
            media_type = essence
            if essence in self._types and sniff.contradiction(essence, head) is None:
                found = self._good.get(essence)
                if found is None:
                    found = self._good[essence] = Verdict(essence)
                return found
        else:
            media_type = sniff.computed(value, head, nosniff=_nosniff(lines))
        if not head and not essence:
            return Verdict(media_type)  # nothing came: there is nothing to refuse
        if media_type not in self._types:
            return Verdict(media_type, UNSUPPORTED)
        real = sniff.contradiction(media_type, head)
        return Verdict(media_type) if real is None else Verdict(real, MISMATCH)


@lru_cache(maxsize=16)  # asked for several times of the same answer
def content_type(lines: str) -> str | None:
    """The last Content-Type among header lines (MIME Sniffing 5.1); None without one."""
    lower = lines.lower()
    at = lower.rfind("content-type")
    while at >= 0:
        end = at + 12
        if at == 0 or lower[at - 1] == "\n":
            line_end = lines.find("\n", end)
            gap, colon, value = lines[end : line_end if line_end >= 0 else None].partition(":")
            if colon and not gap.strip():
                return value.strip(" \t\r")
        at = lower.rfind("content-type", 0, at)
    return None


def _nosniff(lines: str) -> bool:
    """Fetch 3.6: the first value of X-Content-Type-Options is `nosniff`."""
    if "x-content-type-options" not in lines.lower():
        return False
    for line in lines.split("\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip().lower() == "x-content-type-options":
            return value.partition(",")[0].strip().lower() == "nosniff"
    return False
