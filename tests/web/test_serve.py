"""The server answers over real HTTP what the web says, when it says so."""

from __future__ import annotations

import gzip
import http.client
import itertools
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest

from tests.web import render
from tests.web.grow import Web
from tests.web.model import DAY, EPOCH, Kind, Resource, Validators
from tests.web.serve import Running, running, toml


@pytest.fixture(scope="module")
def site() -> Iterator[Running]:
    with running(Web(3, hosts=30, pages=300)) as served:
        yield served


@pytest.fixture(autouse=True)
def at_the_beginning(site: Running) -> None:
    site.control(now=EPOCH, down=[])


def ask(
    site: Running, made: Resource, headers: dict[str, str] | None = None, method: str = "GET", path: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """One request on a connection of its own: status, headers (names in lower case), body."""
    connection = http.client.HTTPConnection(site.web.address(made.host.name), site.port, timeout=10)
    try:
        host = f"{made.host.name}:{site.port}"
        connection.request(method, path or made.path, headers={"Host": host, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def pages(site: Running) -> list[Resource]:
    quick = [made for made in site.web.resources.values() if not made.host.latency_ms]
    return [made for made in quick if made.kind is Kind.PAGE and made.status == 200]


@pytest.mark.parametrize("now", [EPOCH, EPOCH + 30 * DAY])
def test_every_url_answers_as_described(site: Running, now: int) -> None:
    site.control(now=now, warm=now == EPOCH)
    for made in site.web.resources.values():
        if made.host.latency_ms:
            continue
        status, headers, body = ask(site, made)
        told = render.answer(site.web, made, now)
        assert (status, body) == (told.status, told.body), made.url
        assert headers.get("etag", "") == told.etag
        assert headers["date"] == render.http_date(now)
        if made.kind is Kind.REDIRECT:
            assert headers["location"] in (
                made.location,
                made.location.removeprefix(site.web.origin(made.host.name)),
            )


def test_what_is_nowhere_is_a_404_and_a_foreign_host_a_421(site: Running) -> None:
    made = pages(site)[0]
    assert ask(site, made, path="/no/such/page")[0] == 404
    assert ask(site, made, headers={"Host": "www.elsewhere.test"})[0] == 421
    assert ask(site, made, method="POST")[0] == 405


def test_equivalent_spellings_get_the_same_page(site: Running) -> None:
    made = next(made for made in pages(site) if "-" in made.path and "?" not in made.path)
    body = ask(site, made)[2]
    assert ask(site, made, path=made.path.replace("-", "%2d", 1))[2] == body
    assert ask(site, made, path=made.path + "?utm_source=feed&utm_medium=mail")[2] == body
    assert ask(site, made, path=made.path + "?other=1")[0] == 404


@pytest.mark.parametrize("validators", list(Validators))
def test_conditional_requests_get_304_until_the_page_changes(site: Running, validators: Validators) -> None:
    made = next(
        made
        for made in pages(site)
        if made.validators is validators and made.rate and not made.leaf and not made.twin
    )
    _, headers, body = ask(site, made)
    assert ("etag" in headers) is (validators in (Validators.BOTH, Validators.ETAG))
    assert ("last-modified" in headers) is (validators in (Validators.BOTH, Validators.MODIFIED))
    conditions = {"If-None-Match": headers.get("etag", '"none"')}
    if "last-modified" in headers:
        conditions["If-Modified-Since"] = headers["last-modified"]
    if validators is Validators.MODIFIED:
        del conditions["If-None-Match"]
    change = site.web.changes(made, EPOCH + 365 * DAY)[0]
    site.control(now=change - 1)
    status, again, nothing = ask(site, made, conditions)
    if validators is Validators.NONE:
        assert (status, nothing) == (200, body)
    else:
        assert (status, nothing) == (304, b"")
        assert {"etag": again.get("etag"), "last-modified": again.get("last-modified")} == {
            "etag": headers.get("etag"), "last-modified": headers.get("last-modified"),
        }  # fmt: skip
    site.control(now=change)
    status, _, changed = ask(site, made, conditions)
    assert status == 200
    assert changed != body


def test_the_etag_wins_over_the_date(site: Running) -> None:
    made = next(made for made in pages(site) if made.validators is Validators.BOTH)
    date = ask(site, made)[1]["last-modified"]
    assert ask(site, made, {"If-None-Match": '"other"', "If-Modified-Since": date})[0] == 200
    assert ask(site, made, {"If-Modified-Since": render.http_date(EPOCH)})[0] == 304
    assert ask(site, made, {"If-Modified-Since": "yesterday"})[0] == 200


def test_head_gives_the_headers_alone(site: Running) -> None:
    made = next(made for made in pages(site) if not made.host.chunked)
    status, headers, body = ask(site, made, method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) == len(render.answer(site.web, made, EPOCH).body)


def test_some_hosts_compress_when_asked_and_some_send_in_chunks(site: Running) -> None:
    zipping = next(made for made in pages(site) if made.host.gzip)
    _, headers, body = ask(site, zipping, {"Accept-Encoding": "gzip, br"})
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == render.answer(site.web, zipping, EPOCH).body
    chunking = next(made for made in pages(site) if made.host.chunked)
    _, headers, body = ask(site, chunking)
    assert headers["transfer-encoding"] == "chunked"
    assert body == render.answer(site.web, chunking, EPOCH).body


def test_a_connection_serves_many_requests_and_the_log_tells_of_each(site: Running) -> None:
    before = len(site.log())
    some = [made for made in pages(site) if made.host is site.web.hosts[0]][:5]
    connection = http.client.HTTPConnection(site.web.address(some[0].host.name), site.port, timeout=10)
    for made in some:
        headers = {"Host": f"{made.host.name}:{site.port}", "User-Agent": "tester", "If-None-Match": '"x"'}
        connection.request("GET", made.path, headers=headers)
        connection.getresponse().read()
    connection.close()
    lines = site.log(before)
    assert [line["path"] for line in lines] == [made.path for made in some]
    assert len({line["connection"] for line in lines}) == 1
    assert {(line["agent"], line["if_none_match"], line["status"]) for line in lines} == {
        ("tester", '"x"', 200)
    }
    assert all(a["end"] <= b["start"] for a, b in itertools.pairwise(lines))
    assert all(line["start"] <= line["end"] for line in lines)


def test_a_slow_host_takes_its_time(site: Running) -> None:
    slow = next(host for host in site.web.hosts if host.latency_ms)
    ask(site, site.web.home(slow))
    line = site.log()[-1]
    assert line["end"] - line["start"] >= slow.latency_ms / 1000 - 0.01


def test_a_dead_host_refuses_and_a_downed_one_drops(site: Running) -> None:
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(site.web.address(site.web.dead[0]), site.port, timeout=10).connect()
    made = pages(site)[0]
    site.control(down=[made.host.name])
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        ask(site, made)
    assert site.log()[-1]["status"] == 0
    site.control(down=[])
    assert ask(site, made)[0] == 200


def test_the_control_port_says_what_is_wrong(site: Running) -> None:
    with pytest.raises(ValueError, match="refused POST /time"):
        site._ask("POST", "/time", {"now": "the day after"})
    with pytest.raises(ValueError, match="no such request"):
        site._ask("GET", "/nothing")


def test_the_settings_are_toml_for_the_crawler(site: Running) -> None:
    assert tomllib.loads(toml(site.settings)) == site.settings
    assert site.settings["dns"]["hosts"] == {"*.test": "127.1.0.0/16"}


def test_no_other_name_has_an_address(site: Running) -> None:
    """RFC 1035, 4.1: the answer repeats id and question, and its code is 3, no such name."""
    (server,) = site.settings["dns"]["servers"]
    question = b"\3www\7nowhere\7invalid\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(10)
        client.connect(("127.0.0.1", int(server.partition(":")[2])))
        client.send(b"\xab\xcd\1\0\0\1\0\0\0\0\0\0" + question)
        answer = client.recv(512)
    assert answer[:2] == b"\xab\xcd"
    assert answer[3] & 15 == 3
    assert answer[12:] == question


def test_the_command_refuses_what_cannot_be_grown() -> None:
    command = [sys.executable, "-m", "tests.web.serve", "--hosts", "10", "--pages", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "three a host at least" in done.stderr
