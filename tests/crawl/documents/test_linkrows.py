"""Rows of `links`: keys, scope, depth; and that a batch leaves no trace in them."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.documents.linkrows import COLUMNS, LinkRows, chained
from crawl.keys import Keyer
from crawl.policy import Identity, Limits, Parsing, Scope, Settings
from crawl.rejects import Rejects

KEYER = Keyer(bytes(range(32)))
SETTINGS = Settings(scope=Scope(domains=("in.test",)), limits=replace(Limits(), depth=3))


def rows_of(
    pages: Sequence[tuple[str, Sequence[str], int]], options: Settings = SETTINGS
) -> tuple[pa.Table, Rejects]:
    rows = LinkRows(KEYER, options)
    for source, targets, depth in pages:
        count = len(targets)
        rows.add(
            targets,
            [None] * count,
            ["nofollow"] * count,
            ["a"] * count,
            source_key=KEYER.url_key(source),
            source_domain="in.test",
            depth=depth,
            first_parse=True,
        )
    return rows.finish()


def test_a_row_names_both_ends_and_says_whether_they_are_of_one_domain() -> None:
    table, rejects = rows_of([("http://in.test/", ["http://a.in.test/x", "http://out.test/"], 1)])
    assert table.schema == COLUMNS
    inner, outer = table.to_pylist()
    assert (inner["target_domain"], inner["is_internal"], inner["admitted"]) == ("in.test", True, True)
    assert inner["source_key"] == KEYER.url_key("http://in.test/")
    assert inner["target_key"] == KEYER.url_key("http://a.in.test/x")
    assert (outer["target_domain"], outer["is_internal"], outer["admitted"]) == ("out.test", False, False)
    assert list(rejects) == [("scope_host", "out.test", "", 1, "http://out.test/")]


def test_a_target_too_deep_keeps_its_row_and_is_counted() -> None:
    table, rejects = rows_of(
        [("http://in.test/", ["http://in.test/x"], 3), ("http://in.test/d", ["http://in.test/x"], 4)]
    )
    assert table["admitted"].to_pylist() == [True, False]
    assert list(rejects) == [("depth", "in.test", "", 1, "http://in.test/x")]


def test_links_of_a_kind_that_is_not_followed_or_that_ask_it_are_not_admitted() -> None:
    parsing = Parsing(via=("area",))
    _, rejects = rows_of([("http://in.test/", ["http://in.test/x"], 1)], replace(SETTINGS, parsing=parsing))
    assert [row[0] for row in rejects] == ["via"]
    parsing = Parsing(follow_nofollow=False)
    _, rejects = rows_of([("http://in.test/", ["http://in.test/x"], 1)], replace(SETTINGS, parsing=parsing))
    assert [row[0] for row in rejects] == ["nofollow"]


def test_spellings_of_one_key_are_one_row_of_a_page_the_first() -> None:
    assert Identity().tracking == ()
    spellings = ["http://in.test/?b=1&a=2", "http://in.test/?a=2&b=1", "http://in.test/other"]
    table, _ = rows_of([("http://in.test/", spellings, 1), ("http://in.test/2", spellings[1:], 1)])
    assert table["target_url"].to_pylist() == [spellings[0], spellings[2], spellings[1], spellings[2]]


def test_no_links_are_a_table_without_rows() -> None:
    table, rejects = LinkRows(KEYER, SETTINGS).finish()
    assert (table.num_rows, table.schema, len(rejects)) == (0, COLUMNS, 0)
    assert rows_of([("http://in.test/", [], 1)])[0].num_rows == 0


PAGE = st.tuples(
    st.sampled_from(["http://in.test/1", "http://in.test/2"]),
    st.lists(
        st.sampled_from(
            [
                f"http://{h}/{p}"
                for h in ("in.test", "b.in.test", "out.test")
                for p in ("", "?b=1&a=1", "?a=1&b=1")
            ]
        ),
        max_size=6,
        unique=True,
    ),
    st.integers(1, 5),
)


@settings(max_examples=60)
@given(st.lists(PAGE, max_size=5), st.integers(0, 5))
def test_rows_and_rejects_do_not_depend_on_the_batch(
    pages: list[tuple[str, list[str], int]], cut: int
) -> None:
    whole, rejects = rows_of(pages)
    first, some = rows_of(pages[:cut])
    second, others = rows_of(pages[cut:])
    assert whole.to_pylist() == first.to_pylist() + second.to_pylist()
    some.update(others)
    assert list(some) == list(rejects)


def test_a_redirect_and_a_refresh_carry_the_chain_of_their_page_one_hop_on() -> None:
    rows = LinkRows(KEYER, SETTINGS)
    sources = {"http://in.test/1": (77, 0), "http://in.test/2": (88, 4), "http://in.test/3": (99, 5)}
    for source in sources:
        vias = ["a", "redirect", "refresh"]
        targets = [f"{source}/{via}" for via in vias]
        rows.add(
            targets,
            [None] * 3,
            [None] * 3,
            vias,
            source_key=KEYER.url_key(source),
            source_domain="in.test",
            depth=1,
            first_parse=True,
        )
    table, _ = rows.finish()
    assert table["chain_id"].null_count == len(table)
    chains = {KEYER.url_key(source): chain for source, chain in sources.items()}
    told = chained(table, chains, most=5)
    assert told.schema == COLUMNS
    assert list(zip(told["chain_id"].to_pylist(), told["chain_hop"].to_pylist(), strict=True)) == [
        *[(None, None), (77, 1), (77, 1)],
        *[(None, None), (88, 5), (88, 5)],
        *[(None, None), (None, None), (None, None)],  # as long as a chain may be
    ]
    assert chained(told.slice(0, 1), chains, most=5).equals(told.slice(0, 1))
