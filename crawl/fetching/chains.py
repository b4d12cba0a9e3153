"""Redirect chains: what an answer with a Location means, given where its chain has been.

What always holds: a target is the URL that a browser would go to, without fragment; a chain that comes back
to a URL, or to another spelling of one that it left, is a loop; no chain is longer than its limit, hops of
earlier rounds counted. Another spelling of the very URL that answers (a tracking parameter dropped, a query
sorted) is no loop, once. It asks nothing; whether a target may be asked is the ledger's to find out. Loops
over URLs that have turns of their own are found when a round is merged (crawl.merging.loops).
"""

from __future__ import annotations

from crawl import url
from crawl.errors import UrlError
from crawl.fetching.hostqueue import Ask
from crawl.keys import Keyer
from crawl.net.exchange import Answer, location
from crawl.outcomes import Outcome
from crawl.policy import Settings
from crawl.records import Fetch

__all__ = ["Chains"]


class Chains:
    """Where each chain of a task has been: URLs asked, by chain."""

    def __init__(self, keyer: Keyer, settings: Settings) -> None:
        self._keyer = keyer
        self._settings = settings
        self._been: dict[int, dict[str, int]] = {}

    def judge(self, ask: Ask, answer: Answer) -> tuple[Outcome, str | None, str | None]:
        """(outcome, reason, next URL) of an answer once its redirect, if any, is judged."""
        if answer.outcome is not Outcome.REDIRECT:
            return answer.outcome, answer.reason, None
        try:
            where = location(answer)
            if where is None:
                return Outcome.BAD_REDIRECT, "no_location", None
            target = url.canonical(where, base=ask.url)
        except UrlError as error:
            return Outcome.BAD_REDIRECT, error.reason, None
        been = self._been.get(ask.chain_id, {})
        key = self._keyer.url_key(target)
        if target == ask.url or target in been or (key != ask.url_key and key in been.values()):
            return Outcome.REDIRECT_LOOP, None, target
        most = self._settings.robots.redirects if ask.kind == "robots" else self._settings.limits.redirects
        if ask.hop >= most:
            return Outcome.TOO_MANY_REDIRECTS, None, target
        return Outcome.REDIRECT, None, target

    def final_key(self, ask: Ask, target: str | None) -> int:
        """Key of the last URL of a chain as far as an answer shows it."""
        return ask.url_key if target is None else self._keyer.url_key(target)

    def went(self, record: Fetch) -> None:
        """A URL of a chain was asked."""
        self._been.setdefault(record.chain_id, {})[record.url] = record.url_key

    def been(self, chain_id: int, where: str) -> bool:
        """Whether a URL was asked in this chain before."""
        return where in self._been.get(chain_id, {})
