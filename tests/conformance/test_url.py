"""URLs: the outside cases of crawl.url."""

from pathlib import Path

from crawl.errors import UrlError
from crawl.policy import Identity
from crawl.url import canonical, domain, key_form
from tests.conformance.report import Apart, Row, Scores

#: lossy steps that the documented identity takes; `drop_session_tracking` only for names an operator gives
DOCUMENTED = {"sort_query", "drop_session_tracking", "drop_fragment"}
SESSION = Identity(session=("phpsessid", "sid", "aspsessionid*", "cfid", "cftoken", "jsessionid"))

_ORDER = "parameters of one name keep their order: servers read them as a list"
_SITES_OWN = "a tracking parameter of one site, in no list that ours is drawn from; an operator can add it"
NORMALIZE = {
    "norm-9b62a57312": _ORDER,
    "norm-c364db1ff8": _ORDER,
    "norm-89ad312df4": _ORDER,
    "norm-1feaffced2": _ORDER,
    "norm-15d55f4b74": _SITES_OWN,
}
DOMAINS = {
    "psl-0f1804006f": "uk.com is a public suffix in the list's private section, which counts here",
    "psl-5f99d9475a": "an unknown top level is a suffix by the list's default rule *",
}


def is_web(href: str) -> bool:
    return href.startswith(("http://", "https://"))


def or_reason(text: str, base: str | None = None) -> str:
    """The canonical URL, or the reason why there is none."""
    try:
        return canonical(text, base)
    except UrlError as error:
        return error.reason


def unstable(url: str) -> str | None:
    """What is wrong where one of the two forms is no fixed point."""
    if not is_web(url):
        return None
    if canonical(url) != url:
        return f"not stable: {url} becomes {canonical(url)}"
    key = key_form(url)
    return None if key_form(key) == key else f"key not stable: {key} becomes {key_form(key)}"


def differs(got: str, expected: str) -> str | None:
    return None if got == expected else f"{got!r}, not {expected!r}"


def serialised(row: Row) -> str | None:
    """A row at WHATWG level: the serialisation without fragment, or the refusal."""
    got = or_reason(row["input"], row.get("base"))
    expected = row.get("expected")
    if expected is None:
        return None if got.startswith("url_") else f"{got!r}, not an error"
    if not is_web(expected):
        return differs(got, "url_scheme")
    return differs(got, expected.partition("#")[0]) or unstable(got)


def same_key(row: Row, identity: Identity = Identity()) -> str | None:  # noqa: B008 - frozen
    got = or_reason(row["input"], row.get("base"))
    if not is_web(got):
        return f"{got!r}, not {row['expected']!r}"
    wanted = key_form(canonical(row["expected"]), identity)
    return differs(key_form(got, identity), wanted) or unstable(got)


def test_spellings_of_one_url(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | Apart | None:
        level = row["level"]
        if level == "whatwg":
            return serialised(row)
        if level == "repair":
            return Apart("input without a scheme: seeds and links are not guessed at")
        if level == "policy" and not set(row["needs"]) <= DOCUMENTED:
            return Apart("needs lossy steps that this crawler does not take: they merge what may differ")
        if not is_web(row["input"]) and or_reason(row["input"]) in {"url_scheme", "url_invalid"}:
            return Apart("neither http nor https")
        return same_key(row, SESSION)

    scores.run(
        cases, "url/normalize.jsonl", check, NORMALIZE, through="crawl.url.canonical, crawl.url.key_form"
    )


def test_references_resolve(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | Apart | None:
        if row["level"].startswith("rfc3986-strict"):
            return serialised(row | {"expected": row["whatwg_href"]})
        expected = row.get("expected")
        if row["level"] == "whatwg" or expected is None or not is_web(expected):
            return serialised(row)
        return same_key(row)

    scores.run(cases, "url/resolve.jsonl", check, through="crawl.url.canonical, crawl.url.key_form")


def test_equivalence(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | Apart | None:
        if row["level"] == "policy":
            return Apart("needs lossy steps that this crawler does not take: they merge what may differ")
        mine = key_form(canonical(row["input"]))
        other = key_form(canonical(row.get("same_as") or row["different_from"]))
        if (mine == other) == ("same_as" in row):
            return None
        return f"{mine!r} and {other!r}"

    scores.run(cases, "url/equivalence.jsonl", check, through="crawl.url.key_form")


def test_web_platform_tests(cases: Path, scores: Scores) -> None:
    scores.run(cases, "url/wpt_urltestdata.jsonl", serialised, through="crawl.url.canonical")


def test_queries_in_the_encoding_of_the_page(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        got = canonical("http://a.test/?x" + row["input"] + "x", encoding=row["encoding"])
        return differs(got, "http://a.test/?x" + row["expected"] + "x")

    scores.run(cases, "url/wpt_percent_encoding.jsonl", check, through="crawl.url.canonical")


def test_international_names(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        expected = "url_invalid" if row["expected"] is None else f"http://{row['expected']}/x"
        return differs(or_reason(f"http://{row['input']}/x"), expected)

    scores.run(cases, "url/wpt_toascii.jsonl", check, through="crawl.url.canonical")


def test_registrable_domains(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | Apart | None:
        name = row.get("host")
        if name is None:
            try:
                name = canonical(row["url"]).split("/")[2]
            except UrlError:
                return None if row["grouping_key"] == "" else f"no URL: {row['url']}"
        wanted = row.get("registrable_domain") or row.get("grouping_key")
        got = domain(name)
        if wanted is None:  # a public suffix, or no name at all: never empty, or it would group with others
            return None if got else "empty"
        ascii_wanted = or_reason(f"http://{wanted}/").split("/")[2]
        return None if got in (wanted.lower(), ascii_wanted) else f"{got!r}, not {wanted!r}"

    scores.run(cases, "url/registrable_domain.jsonl", check, DOMAINS, through="crawl.url.domain")


def test_what_only_one_peer_says(cases: Path, scores: Scores) -> None:
    def check(row: Row) -> str | None:
        return unstable(or_reason(row["input"], row.get("base")))

    scores.run(
        cases,
        "url/peer_only.jsonl",
        check,
        through="fixed points of crawl.url.canonical and key_form (values are one peer's)",
    )
