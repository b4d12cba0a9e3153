"""Settings: what is refused and how it is told, which layer wins, and that every setting explains itself."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.errors import SettingsError
from crawl.policy import Politeness, Settings
from cycles.settings import config

KEYS = [key for key, _, _ in config.show("", {})]


def test_an_empty_file_gives_the_defaults() -> None:
    assert Settings() == config.load("", {})


def test_the_file_made_by_init_gives_the_defaults() -> None:
    assert Settings() == config.load(config.DEFAULT_TOML, {})


def test_the_names_that_outside_scripts_rely_on_are_settings() -> None:
    text = """
        [agent]
        name = "x"
        contact = "mailto:a@b.test"
        [egress]
        allow = ["127.0.0.0/8"]
        [dns]
        hosts = { "*.test" = "127.1.0.0/16" }
        [politeness]
        min_delay = "20ms"
        [scope]
        domains = ["python.test"]
        hosts = []
        exclude = ["/private/*"]
        [round]
        window = "10m"
        merge_every = 2
    """
    found = config.load(text, {})
    assert found.agent.name == "x"
    assert found.egress.allow == ("127.0.0.0/8",)
    assert dict(found.dns.hosts) == {"*.test": "127.1.0.0/16"}
    assert found.politeness.min_delay == timedelta(milliseconds=20)
    assert found.scope.exclude == ("/private/*",)
    assert (found.round.window, found.round.merge_every) == (timedelta(minutes=10), 2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[politeness]\nmin_dely = '1s'", ["politeness.min_dely", "'politeness.min_delay'"]),
        ("[politness]\nmin_delay = '1s'", ["'politness'", "'politeness'"]),
        ("[round]\nwindow = 600", ["round.window", "600", "unit"]),
        ("[round]\nwindow = '0s'", ["round.window"]),
        ("[round]\nmerge_every = 0", ["round.merge_every"]),
        ("[round]\nmerge_every = '1'", ['round.merge_every = "1"', "a whole number"]),
        ("[round]\nmerge_every = true", ["round.merge_every = true", "a whole number"]),
        ("[politeness]\nmin_delay = '999999999999999d'", ["politeness.min_delay"]),
        ("[limits]\ndepth = -1", ["limits.depth", "negative"]),
        ("[scope]\ndomains = 'a.test'", ["scope.domains"]),
        ("[scope]\ndomains = [1]", ["scope.domains"]),
        ("[egress]\nallow = ['127.0.0.0/33']", ["egress.allow", "127.0.0.0/33"]),
        ("[dns]\nhosts = { a = 'b' }", ["dns.hosts", "'b'"]),
        ("[agent]\ncontact = 'me'", ["agent.contact", "mailto:"]),
        ("[agent]\nname = 'my bot/1'", ["agent.name"]),
        ("politeness = 3", ["politeness", "[politeness]"]),
        ("min_delay = '1s'", ["'min_delay'", "'politeness.min_delay'"]),
        ("jitter = 1", ["'retry.jitter' or 'recrawl.jitter'"]),
        ("[scope]\nhosts = ['http://a.test/']", ["crawl.toml: scope.hosts", 'write "a.test"']),
        ("[politeness\n", ["crawl.toml", "TOML"]),
    ],
)
def test_a_setting_that_does_not_fit_is_named_with_its_place_and_remedy(text: str, told: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        config.load(text, {}, "crawl.toml")
    assert [] == [word for word in told if word not in str(caught.value)], str(caught.value)


def test_the_environment_wins_over_the_file_and_the_file_over_the_default() -> None:
    text = "[politeness]\nmin_delay = '2s'\nfactor = 3.0"
    found = config.load(text, {"CRAWL_POLITENESS__MIN_DELAY": "20ms", "PATH": "/bin"})
    assert found.politeness == Politeness(min_delay=timedelta(milliseconds=20), factor=3.0)
    rows = config.show(text, {"CRAWL_POLITENESS__MIN_DELAY": "20ms"})
    told = {key: (value, origin) for key, value, origin in rows}
    assert told["politeness.min_delay"] == ("20ms", "environment")
    assert told["politeness.factor"] == (3.0, "file")
    assert told["politeness.factor_cap"] == ("1m", "default")


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("CRAWL_SCOPE__DOMAINS", "python.test", "scope.domains", ("python.test",)),
        ("CRAWL_SCOPE__DOMAINS", '["a.test", "b.test"]', "scope.domains", ("a.test", "b.test")),
        ("CRAWL_AGENT__NAME", "2026", "agent.name", "2026"),
        ("CRAWL_DNS__HOSTS", '{"*.test" = "127.0.0.1"}', "dns.hosts", {"*.test": "127.0.0.1"}),
        ("CRAWL_ROUND__MERGE_EVERY", "3", "round.merge_every", 3),
        ("CRAWL_EGRESS__PORTS", "81", "egress.ports", (81,)),
        ("CRAWL_EGRESS__PORTS", "81, 82", "egress.ports", (81, 82)),
        ("CRAWL_SCOPE__HOSTS", "a.test, b.test,", "scope.hosts", ("a.test", "b.test")),
        ("CRAWL_SCOPE__EXCLUDE", '"/a,b"', "scope.exclude", ("/a,b",)),
        ("CRAWL_PLANNING__CUTS", "0.9,0.5,0.1", "planning.cuts", (0.9, 0.5, 0.1)),
    ],
)
def test_the_environment_needs_no_quotes_and_no_brackets(
    variable: str, text: str, key: str, value: object
) -> None:
    section, name = key.split(".")
    assert value == getattr(getattr(config.load("", {variable: text}), section), name)


def test_an_unknown_variable_of_ours_is_refused_with_its_name() -> None:
    with pytest.raises(SettingsError, match=r"CRAWL_POLITENESS__MIN_DELY.*politeness\.min_delay"):
        config.load("", {"CRAWL_POLITENESS__MIN_DELY": "1s"})


def test_a_variable_that_is_no_setting_is_left_alone() -> None:
    others = {"CRAWL_CASES": "/somewhere", "CRAWLER__X": "1", "CRAWL_LAKE": "l", "CRAWL_STORAGE_SECRET": "s"}
    assert Settings() == config.load("", others)


@pytest.mark.parametrize("variable", ["CRAWL_POLITENESS_MIN_DELAY", "CRAWL_POLITENESS_MIN_DELY"])
def test_a_variable_with_one_underscore_is_refused_with_the_right_name(variable: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} sets nothing: write CRAWL_POLITENESS__MIN_DELAY"):
        config.load("", {variable: "1s"})


@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_a_wrong_type_is_told_in_our_words(key: str) -> None:
    section, name = key.split(".")
    with pytest.raises(
        SettingsError, match=rf"{section}\.{name} = .* does not fit: (write|a duration is)"
    ) as caught:
        config.load(f"[{section}]\n{name} = 1979-05-27", {})
    assert "another type" not in str(caught.value)
    assert "Input should" not in str(caught.value)


def test_a_key_a_section_or_nothing_names_keys() -> None:
    assert KEYS == config.keys_of(None)
    assert ["round.window", "round.merge_every"] == config.keys_of("round")
    assert ["round.window"] == config.keys_of("round.window")
    with pytest.raises(SettingsError, match=r"'round\.window'"):
        config.keys_of("window")


def test_explaining_a_list_says_how_two_are_written() -> None:
    assert "x,y" in config.explain("scope.hosts")
    assert '"10m"' in config.explain("round.window")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20ms", 0.02), ("1s", 1), ("1.5h", 5400), ("10m", 600), ("5d", 432000), (" 2 h ", 7200)],
)
def test_a_duration_has_a_unit(text: str, seconds: float) -> None:
    assert timedelta(seconds=seconds) == config.duration(text)


@pytest.mark.parametrize("text", ["", "1", "1w", "-1s", "1s2", "s", "1e3s", "٣x"])
def test_what_is_no_duration_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="unit"):
        config.duration(text)


@given(ms=st.integers(0, 10**12))
@settings(max_examples=100, deadline=None)
def test_a_duration_is_written_as_it_can_be_read(ms: int) -> None:
    value = timedelta(milliseconds=ms)
    assert value == config.duration(config.written(value))


@given(text=st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_no_text_of_a_file_raises_anything_but_a_settings_error(text: str) -> None:
    try:
        config.load(f"[scope]\ndomains = {text}", {"CRAWL_ROUND__WINDOW": text})
    except SettingsError as exc:
        told = str(exc)
    else:
        told = "accepted"
    assert told


def test_pinned_settings_come_back_equal_and_keep_their_version() -> None:
    text = '[dns]\nhosts = { "*.test" = "127.0.0.1" }\n[planning]\ncuts = [0.9, 0.5, 0.1]\n'
    found = config.load(text, {})
    again = config.from_json(config.to_json(found))
    assert found == again
    assert config.policy_version(found) == config.policy_version(again) != config.policy_version(Settings())


def test_settings_pinned_by_a_newer_version_are_refused_by_name() -> None:
    raw = json.loads(config.to_json(Settings()))
    raw["round"]["fortnight"] = "1s"
    with pytest.raises(SettingsError, match=r"round\.fortnight"):
        config.from_json(json.dumps(raw))


@pytest.mark.parametrize("key", KEYS)
def test_every_setting_says_what_it_is_for(key: str) -> None:
    first = config.explain(key).splitlines()[0]
    assert first.startswith(key + ": ")
    assert len(first) > len(key) + 5


def test_explaining_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"round\.window"):
        config.explain("round.windw")


def test_every_field_of_the_policy_is_a_key() -> None:
    fields = [
        f"{section.name}.{field.name}"
        for section in dataclasses.fields(Settings)
        for field in dataclasses.fields(getattr(Settings(), section.name))
    ]
    assert fields == KEYS


def test_setting_a_key_keeps_comments_and_everything_else() -> None:
    changed = config.set_key(config.DEFAULT_TOML, "politeness.min_delay", "20ms")
    assert "# required before any public host is asked" in changed
    assert config.load(changed, {}).politeness.min_delay == timedelta(milliseconds=20)
    assert tomllib.loads(changed)["round"] == tomllib.loads(config.DEFAULT_TOML)["round"]


def test_setting_a_key_makes_its_section_and_takes_one_item_for_a_list() -> None:
    changed = config.set_key("", "egress.allow", "127.0.0.0/8")
    assert config.load(changed, {}).egress.allow == ("127.0.0.0/8",)


@pytest.mark.parametrize(
    ("key", "value"),
    [("round.windw", "1s"), ("round.window", "soon"), ("agent.contact", "me"), ("egress.allow", "x")],
)
def test_setting_what_does_not_fit_changes_nothing_and_says_why(key: str, value: str) -> None:
    with pytest.raises(SettingsError, match=key.split(".")[0]):
        config.set_key(config.DEFAULT_TOML, key, value)


@pytest.mark.parametrize(
    ("given", "size"),
    [("10MB", 10_000_000), ("500 KiB", 512_000), ("1.5gb", 1_500_000_000), ("7B", 7), ("9_000", 9_000)],
)
def test_sizes_are_bytes_or_have_a_unit(given: str, size: int) -> None:
    text = config.set_key("", "limits.wire_bytes", given)
    assert config.load(text, {}).limits.wire_bytes == size
    assert config.load("", {"CRAWL_LIMITS__WIRE_BYTES": given}).limits.wire_bytes == size


@pytest.mark.parametrize("given", ["10 apples", "-1MB", "MB"])
def test_a_size_that_is_none_is_told_how_to_write_it(given: str) -> None:
    with pytest.raises(SettingsError, match=r'whole number of bytes, .* like "10MB"'):
        config.set_key("", "limits.wire_bytes", given)


def test_a_name_like_no_other_has_no_nearest() -> None:
    with pytest.raises(SettingsError, match="no setting 'nonsense'; `crawl config LAKE` lists all"):
        config.set_key("", "nonsense", "1")


def test_what_cannot_be_set_for_a_broken_file_names_it_and_says_how_to_go_on() -> None:
    with pytest.raises(SettingsError, match=r"^at/crawl\.toml is not valid TOML: .*; mend it with an editor"):
        config.set_key("[x", "round.window", "1m", "at/crawl.toml")
