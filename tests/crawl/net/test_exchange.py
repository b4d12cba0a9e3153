from hypothesis import given
from hypothesis import strategies as st

from crawl.net.exchange import Answer, header, location
from crawl.outcomes import Outcome


def answer(lines: str) -> Answer:
    return Answer(outcome=Outcome.REDIRECT, reason=None, began=1.0, ended=1.5, headers=lines)


def test_location_is_utf_8_where_it_can_be() -> None:
    assert location(answer("Location: /caf\xc3\xa9")) == "/caf%C3%A9"
    assert location(answer("Location: /caf\xe9")) == "/caf%E9"
    assert location(answer("A: b")) is None
    assert answer("").total_ms == 500


def test_a_header_is_found_whatever_its_case_and_only_as_a_name() -> None:
    lines = "X-Content-Type: no\nLink: content-type: no\nCONTENT-Type : text/html \nContent-Type: other"
    assert header(lines, "content-type") == "text/html"
    assert header(lines, "type") is None
    assert header("", "type") is None


@given(st.lists(st.tuples(st.sampled_from(["A", "b", "Ab", "B-a"]), st.text("ab:- ", max_size=5))))
def test_a_header_is_the_first_line_of_its_name(pairs: list[tuple[str, str]]) -> None:
    lines = "\n".join(f"{name}:{value}" for name, value in pairs)
    for wanted in ("a", "b", "ab", "b-a"):
        expected = next((value.strip(" \t") for name, value in pairs if name.lower() == wanted), None)
        assert header(lines, wanted) == expected
