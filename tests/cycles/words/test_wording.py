"""Codes in words: every code that a rule can give has some."""

from __future__ import annotations

from crawl.outcomes import TABLE
from cycles.words import wording
from cycles.words.wording import counted, said


def test_every_outcome_that_sends_no_request_has_its_words() -> None:
    assert {outcome.value for outcome, rule in TABLE.items() if not rule.asked} == set(wording.SKIPPED)


def test_a_code_is_told_with_its_words_and_an_unknown_one_as_it_stands() -> None:
    assert said("not_utf8", wording.SEED) == "it is not UTF-8 (not_utf8)"
    assert said("news", wording.SEED) == "news"


def test_a_noun_agrees_with_its_number() -> None:
    assert ["0 seeds", "1 seed", "2,000 seeds"] == [counted(n, "seed") for n in (0, 1, 2000)]
    assert "2 entries" == counted(2, "entry", "entries")
