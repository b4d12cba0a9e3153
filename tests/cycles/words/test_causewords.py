"""Why an attempt failed, in words."""

from __future__ import annotations

import pytest

from crawl.policy import Settings
from cycles.words.causewords import cause, denied, once


@pytest.mark.parametrize(
    ("outcome", "reason", "words"),
    [
        (
            "TLS_FAILURE",
            "tls_unknown_ca",
            "tls_unknown_ca: the certificate's authority is not trusted;"
            " tls.ca_file names further authorities",
        ),
        ("TLS_FAILURE", "tls_wrong_host", "tls_wrong_host: the certificate is another host's"),
        ("REFUSED", "econnrefused", "econnrefused: nothing takes connections on that port"),
        ("DNS_TIMEOUT", "Timeout\x1b", "Timeout\\x1b; dns.servers names the name servers that are asked"),
        ("DNS_FAILURE", None, "the name does not exist, or has no address"),
        ("UNAVAILABLE", None, ""),
        (None, "news", "news"),
    ],
)
def test_a_failure_is_told_by_code_words_and_setting(outcome: str, reason: str, words: str) -> None:
    assert words == cause(outcome, reason)


def test_what_may_not_be_asked_names_the_setting_that_lets_it() -> None:
    assert denied("10.1.2.3").startswith("no request may go to 10.1.2.3: it is not of the public internet")
    assert "egress.allow" in denied(None)


def test_the_settings_that_are_named_exist() -> None:
    settings = Settings()
    assert (settings.egress.allow, settings.tls.ca_file, settings.dns.servers) == ((), "", ())


def test_a_code_is_not_told_twice() -> None:
    texts = ("empty (empty)", "empty (html)", "empty", "Disallow: /p (line 2)")
    assert ["empty", "empty (html)", "empty", "Disallow: /p (line 2)"] == [once(text) for text in texts]
