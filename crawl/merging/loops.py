"""Redirects that lead in a circle over URLs with turns of their own: found when a round is merged.

A chain that is followed at once sees its loop (crawl.fetching.chains). Where the members of a loop are asked
in their own turns, by several hosts or in several rounds, nobody sees it whole but the merge, which knows
where every URL redirects.

What always holds: whether a URL is on a loop follows from what this round's visits and the lake say, not from
who was asked first; a URL that only leads into a loop is none of it; at most `MOST` redirects are followed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from crawl.columns import Bools, Ints, among, ints
from crawl.outcomes import Outcome

__all__ = ["MOST", "looping", "marked"]

#: longest loop that is looked for
MOST: Final = 10

#: where known URLs redirect: keys (sorted, distinct) to targets; keys that do not redirect are left out
Redirects = tuple[Ints, Ints]


def looping(visits: pa.Table, known: Callable[[Ints], Redirects]) -> Ints:
    """Sorted keys of this round's redirects that lead back to themselves.

    `visits` has url_key, outcome and redirect_to_key of every visit of the round; `known` tells where URLs
    (sorted, distinct keys) redirected before it.
    """
    keys = ints(visits["url_key"])
    names = (Outcome.REDIRECT.value, Outcome.REDIRECT_LOOP.value)
    moved = (among(visits["outcome"], names) >= 0) & np.asarray(visits["redirect_to_key"].is_valid())
    here, place = np.unique(keys[moved], return_index=True)
    targets = ints(visits["redirect_to_key"])[moved][place]
    at, on_loop = targets.copy(), here == targets
    asked = np.unique(keys)
    for _ in range(MOST - 1):
        open_ = ~on_loop & (at != _END)
        if not open_.any():
            break
        at[open_] = _onward(at[open_], here, targets, asked, known)
        on_loop |= at == here
    found: Ints = here[on_loop]
    return found


#: stands for "does not redirect"; no key is this by any likelihood
_END: Final = np.iinfo(np.int64).min


def _onward(at: Ints, here: Ints, targets: Ints, asked: Ints, known: Callable[[Ints], Redirects]) -> Ints:
    """Where these URLs redirect by this round's visits, else by what was known before it."""
    onward = _look(at, here, targets)
    elsewhere = np.setdiff1d(at, asked)
    if len(elsewhere):
        before = _look(at, *known(elsewhere))
        onward = np.where(onward == _END, before, onward)
    return onward


def _look(at: Ints, keys: Ints, targets: Ints) -> Ints:
    if not len(keys):
        return np.full(len(at), _END)
    place = np.clip(np.searchsorted(keys, at), 0, len(keys) - 1)
    found: Ints = np.where(keys[place] == at, targets[place], _END)
    return found


def marked(visits: pa.Table, loops: Ints) -> pa.Table:
    """The visits (VISITS) with the redirects of these keys (sorted) told as loops."""
    if not len(loops) or not len(visits):
        return visits
    on_loop: Bools = np.isin(ints(visits["url_key"]), loops)
    on_loop &= among(visits["outcome"], (Outcome.REDIRECT.value,)) >= 0
    outcomes = visits["outcome"].to_pylist()
    for place in np.flatnonzero(on_loop).tolist():
        outcomes[place] = Outcome.REDIRECT_LOOP.value
    field = visits.schema.field("outcome")
    return visits.set_column(visits.schema.get_field_index("outcome"), field, pa.array(outcomes, field.type))
