"""Keys: stable, grouped by domain, and their secret stays where it is."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.errors import UsageError
from crawl.keys import Keyer
from crawl.policy import Identity
from crawl.url import canonical, split_many

SECRET = bytes(range(32))
URLS = [
    "http://a.test/",
    "http://a.test/x?b=1&a=2",
    "http://www.a.test/%7e",
    "https://b.test/",
    "http://127.0.0.1/",
]
PINNED_URLS = [
    6375156415987549400,
    6375299480633631044,
    6375347919823777660,
    -5870304416651528106,
    3515278364125584911,
]
PINNED_OTHERS = (6375185320853551049, -2023815477104669905, 572032749541930211)


def test_keys_do_not_change_between_versions() -> None:
    """Written down once: a change of these numbers orphans every lake."""
    keyer = Keyer(SECRET)
    assert keyer.url_keys(URLS, split_many(URLS)[2]).tolist() == PINNED_URLS
    assert (keyer.host_key("a.test"), keyer.document_key("text"), keyer.chain_id(7, 3)) == PINNED_OTHERS


def test_one_by_one_and_in_bulk_give_the_same_keys() -> None:
    keyer = Keyer(SECRET)
    keys = keyer.url_keys(URLS, split_many(URLS)[2])
    assert keys.dtype == np.int64
    assert [keyer.url_key(url) for url in URLS] == keys.tolist()
    assert keyer.url_keys([], []).tolist() == []


def test_spellings_of_one_page_share_a_key() -> None:
    keyer = Keyer(SECRET)
    assert keyer.url_key("http://a.test/?b=1&a=2") == keyer.url_key("http://a.test/?a=2&b=1&utm_source=x")
    assert keyer.url_key("http://a.test/") != keyer.url_key("https://a.test/")


def test_identity_rules_reach_urls_without_query_and_escapes() -> None:
    rules = Identity(strip_slash=("http://a.test",), strip_www=("a.test",))
    keyer = Keyer(SECRET, rules)
    assert keyer.url_key("http://www.a.test/x/") == keyer.url_key("http://www.a.test/x")
    assert keyer.url_key("http://a.test/x") == keyer.url_key("http://www.a.test/x")


@given(st.sampled_from(["a.test", "x.a.test", "y.x.a.test"]), st.text(max_size=20))
@settings(max_examples=50)
def test_a_domains_urls_and_hosts_lie_in_one_range(name: str, path: str) -> None:
    keyer = Keyer(SECRET)
    low, high = keyer.domain_range("a.test")
    assert high - low == 2**48 - 1
    assert low <= keyer.url_key(canonical(f"http://{name}/", None)) <= high
    assert low <= keyer.url_key(canonical("p/" + path.replace("\\", ""), f"http://{name}/")) <= high
    assert low <= keyer.host_key(name) <= high


def test_ranges_stay_inside_64_bits() -> None:
    keyer = Keyer(SECRET)
    for i in range(200):
        low, high = keyer.domain_range(f"d{i}.test")
        assert -(2**63) <= low < high < 2**63


def test_another_secret_gives_other_keys() -> None:
    one, other = Keyer(SECRET), Keyer(SECRET[::-1])
    assert not set(one.url_keys(URLS, split_many(URLS)[2])) & set(other.url_keys(URLS, split_many(URLS)[2]))


def test_texts_with_lone_surrogates_have_keys() -> None:
    keyer = Keyer(SECRET)
    assert keyer.document_key("\ud800") != keyer.document_key("?")


def test_the_secret_is_neither_pickled_nor_printed() -> None:
    keyer = Keyer(b"canary-canary-canary")
    with pytest.raises(UsageError, match="secret"):
        pickle.dumps(keyer)
    assert "canary" not in repr(keyer)
    assert "canary" not in f"{keyer}"


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(UsageError, match="16 to 64 bytes"):
        Keyer(b"short")


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Keyer(SECRET).url_keys(URLS, ["a.test"])
