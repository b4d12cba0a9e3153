"""The demo shows commands that can be typed as they stand."""

from __future__ import annotations

import shlex

import pytest

from tests.web import demo


@pytest.mark.parametrize(
    "word", ["run", "2026-01-01", "SELECT 1", "kind = 'page'", 'a"b', "a$b 'c'", "", "a!b"]
)
def test_a_word_is_quoted_as_a_shell_reads_it(word: str) -> None:
    assert [word] == shlex.split(demo.quoted(word))


def test_sql_is_shown_in_double_quotes() -> None:
    for question in (demo._STATES, demo._ROUNDS):
        assert f'"{question}"' == demo.quoted(question)
