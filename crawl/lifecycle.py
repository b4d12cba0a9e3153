"""The life of a URL: every state, every outcome, and where they lead. All of it is in this file.

What always holds: the table is total; nothing else moves a state. Absence is not evidence: a fault of the
host moves no URL that ever answered; 404 and 410 make a page GONE only after the sightings and the time that
`policy.Recrawl` asks for (a URL is asked once a round, so a round gives one sighting); other faults of a URL
give it up only after the attempts and the time of its rule in `crawl.outcomes`, and 5xx and time-outs never
give up a page that once answered. BLOCKED and QUARANTINED are entered here, and left when the URL is asked
again because the rule behind them changed.
What it does not do: it sets no dates (crawl.recrawl) and holds no mass retirement back (the merge does, which
sees the whole host).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crawl.outcomes import TABLE, Outcome, limit
from crawl.policy import Recrawl, Retry
from crawl.state import State

__all__ = ["MOVES", "NEVER", "Moved", "State", "next_state", "next_states", "spent"]

_LETTER: Final = {
    "D": State.DISCOVERED,
    "F": State.FETCHED,
    "R": State.FAILED_RETRYABLE,
    "B": State.BLOCKED,
    "Q": State.QUARANTINED,
    "G": State.GONE,
    "T": State.TERMINAL,
}

# The state before, by its letter, against the outcome. `=`: as before. `R>G`: R while patience lasts, G when
# it is spent.
_TABLE: Final = """
                     D    F    R    B    Q    G    T
OK                   F    F    F    F    F    F    F
NOT_MODIFIED         F    F    F    F    Q    F    F
REDIRECT             F    F    F    F    F    F    F
UNSUPPORTED_TYPE     F    F    F    F    F    F    F
TOO_LARGE            Q    Q    Q    Q    Q    Q    Q
TYPE_MISMATCH        Q    Q    Q    Q    Q    Q    Q
PARSE_FAILED         Q    Q    Q    Q    Q    Q    Q
NOT_FOUND            R>G  =>G  =>G  R>G  =>G  =    =
GONE                 R>G  =>G  =>G  R>G  =>G  =    =
FORBIDDEN            R>T  =>T  =>T  R>T  =>T  =    =
CLIENT_ERROR         R>T  =>T  =>T  R>T  =>T  =    =
REDIRECT_LOOP        R>T  =>T  =>T  R>T  =>T  =    =
TOO_MANY_REDIRECTS   R>T  =>T  =>T  R>T  =>T  =    =
BAD_REDIRECT         R>T  =>T  =>T  R>T  =>T  =    =
MALFORMED            R>T  =    =>T  R>T  =    =    =
SERVER_ERROR         R>T  =    =>T  R>T  =    =    =
TIMEOUT              R>T  =    =>T  R>T  =    =    =
UNAVAILABLE          R    =    =    R    =    =    =
RATE_LIMITED         R    =    =    R    =    =    =
DNS_TIMEOUT          R    =    =    R    =    =    =
DNS_FAILURE          R    =    =    R    =    =    =
REFUSED              R    =    =    R    =    =    =
RESET                R    =    =    R    =    =    =
TLS_FAILURE          R    =    =    R    =    =    =
CONNECT_TIMEOUT      R    =    =    R    =    =    =
ROBOTS_UNREACHABLE   =    =    =    =    =    =    =
ROBOTS_DENIED        B    B    B    B    B    =    =
SCOPE_DENIED         B    B    B    B    B    =    =
SUPPRESSED           B    B    B    B    B    =    =
EGRESS_DENIED        B    =    B    B    =    =    =
"""


def _read(table: str) -> dict[tuple[State, Outcome], tuple[State, State]]:
    head, *lines = table.strip("\n").splitlines()
    columns = [_LETTER[letter] for letter in head.split()]
    moves = {}
    for line in lines:
        name, *cells = line.split()
        for state, cell in zip(columns, cells, strict=True):
            patient, _, final = cell.partition(">")
            before = state if patient == "=" else _LETTER[patient]
            moves[state, Outcome(name)] = (before, _LETTER[final] if final else before)
    return moves


#: (state, outcome) to the state that follows while patience lasts, and the one when it is spent
MOVES: Final[Mapping[tuple[State, Outcome], tuple[State, State]]] = MappingProxyType(_read(_TABLE))


def next_state(state: State, outcome: Outcome, *, spent: bool = False) -> State:
    """The state after an outcome. `spent`: the patience for this outcome is used up (see `spent`)."""
    return MOVES[state, outcome][spent]


def spent(
    outcome: Outcome,
    *,
    attempts: int,
    unconfirmed: timedelta,
    gone_sightings: int,
    gone_for: timedelta,
    retry: Retry,
    recrawl: Recrawl,
) -> bool:
    """Patience is used up, this outcome counted.

    `attempts`: failures in a row of its kind (`Rule.against`); `unconfirmed`: time since an answer last
    confirmed the URL, or since it was discovered; `gone_sightings` and `gone_for`: answers 404 or 410 in a
    row, and since when.
    """
    if outcome is Outcome.NOT_FOUND:
        return gone_sightings >= recrawl.gone_404 and gone_for >= recrawl.gone_over
    if outcome is Outcome.GONE:
        return gone_sightings >= recrawl.gone_410 and gone_for >= recrawl.gone_over
    rule = TABLE[outcome]
    return rule.against == "url" and attempts >= limit(rule, retry) and unconfirmed >= rule.over


# --- many at once -------------------------------------------------------------------------------------------

#: stands for "no time" in columns of microseconds
NEVER: Final = -1

_STATES: Final = tuple(State)
_OUTCOMES: Final = tuple(Outcome)
_CODES: Final = np.array(
    [[[_STATES.index(s) for s in MOVES[state, outcome]] for outcome in _OUTCOMES] for state in _STATES],
    dtype=np.int8,
)
_KINDS: Final = ("none", "url", "host")
_AGAINST: Final = np.array([_KINDS.index(TABLE[o].against) for o in _OUTCOMES], dtype=np.int8)
_OVER: Final = np.array([TABLE[o].over // timedelta(microseconds=1) for o in _OUTCOMES], dtype=np.int64)
#: an answer with content: it takes back every earlier sign of absence
_ANSWERS: Final = np.array([TABLE[o].asked and TABLE[o].against == "none" for o in _OUTCOMES])
_ABSENT: Final = np.array([o in (Outcome.NOT_FOUND, Outcome.GONE) for o in _OUTCOMES])


@dataclass(frozen=True, slots=True)
class Moved:
    """What an outcome made of many URLs, as columns."""

    states: pa.StringArray
    #: failures in a row of one kind; 0 after an answer
    attempts: npt.NDArray[np.int32]
    #: answers 404 or 410 in a row
    gone_sightings: npt.NDArray[np.int32]
    #: microseconds since 1970, NEVER where there is none
    gone_since: npt.NDArray[np.int64]


def next_states(
    states: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any],
    outcomes: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any],
    *,
    last_outcomes: Sequence[str | None] | pa.Array[Any] | pa.ChunkedArray[Any],
    attempts: npt.NDArray[np.int32],
    gone_sightings: npt.NDArray[np.int32],
    gone_since: npt.NDArray[np.int64],
    confirmed: npt.NDArray[np.int64],
    now: int,
    retry: Retry,
    recrawl: Recrawl,
) -> Moved:
    """`next_state` for many URLs: columns of `seen` before the round (`states` … `gone_since`) and its
    outcomes.

    `confirmed`: last_checked_at, or first_seen_at where that is null. Times are microseconds since 1970;
    `now` is the round's planning time. Raises ValueError for a state or outcome that is none.
    """
    before = _codes(states, _STATES)
    outcome = _codes(outcomes, _OUTCOMES)
    last = _codes(last_outcomes, _OUTCOMES, nulls=True)
    against = _AGAINST[outcome]
    same_kind = (last >= 0) & (_AGAINST[last] == against)
    counted = np.where(same_kind, attempts, 0) + 1
    # a decision not to ask (robots, scope) is no failure, and no answer: the count stays
    count = np.where(against > 0, counted, np.where(_ANSWERS[outcome], 0, attempts)).astype(np.int32)
    absent = _ABSENT[outcome]
    reset = _ANSWERS[outcome]
    sightings = np.where(absent, gone_sightings + 1, np.where(reset, 0, gone_sightings)).astype(np.int32)
    since = np.where(absent & (gone_since == NEVER), now, np.where(reset, NEVER, gone_since))
    used_up = _spent(outcome, count, now - confirmed, sightings, now - since, retry, recrawl)
    after = _CODES[before, outcome, used_up.astype(np.int8)]
    names = pa.array([s.value for s in _STATES], pa.string())
    return Moved(names.take(pa.array(after, pa.int8())), count, sightings, since)


def _spent(
    outcome: npt.NDArray[np.int64],
    attempts: npt.NDArray[np.int32],
    unconfirmed: npt.NDArray[np.int64],
    sightings: npt.NDArray[np.int32],
    gone_for: npt.NDArray[np.int64],
    retry: Retry,
    recrawl: Recrawl,
) -> npt.NDArray[np.bool_]:
    limits = np.array([limit(TABLE[o], retry) for o in _OUTCOMES])
    given_up = (_AGAINST[outcome] == 1) & (attempts >= limits[outcome]) & (unconfirmed >= _OVER[outcome])
    needed = np.where(outcome == _OUTCOMES.index(Outcome.GONE), recrawl.gone_410, recrawl.gone_404)
    gone = (sightings >= needed) & (gone_for >= recrawl.gone_over // timedelta(microseconds=1))
    return np.where(_ABSENT[outcome], gone, given_up)


def _codes(
    values: Sequence[str | None] | pa.Array[Any] | pa.ChunkedArray[Any],
    names: Sequence[str],
    *,
    nulls: bool = False,
) -> npt.NDArray[np.int64]:
    """Positions of values in `names`; -1 for null."""
    column = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, pa.string())
    found = pc.index_in(column, value_set=pa.array([str(n) for n in names], pa.string()))
    unknown = found.null_count - (column.null_count if nulls else 0)
    if unknown:
        raise ValueError(f"{unknown} values are none of {', '.join(names)}")
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
