"""A web made page by page on loopback, and crawls of it in this process on a cluster that is up already.

`Site` serves what a test puts there, under any host name, on one port of a loopback address, and keeps what
it was asked. `Crawl` is a lake of that web: rounds run by `cycles.rounds.round.run` at given times, questions
asked by the commands.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from cycles.cli import command
from cycles.rounds.round import Done, run
from cycles.session.setup import open_lake
from cycles.settings.options import RunOptions
from cycles.words.progress import Progress
from lake.store import Store
from tests.web.serve import toml

__all__ = ["Asked", "Crawl", "Reply", "Site", "page", "serving", "zipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a URL answers, after `delay` seconds; a conditional request with the same `etag` is told 304."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: str | None = None
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, in real time: `start` when it had been read, `end` when its answer had been written."""

    host: str
    path: str
    status: int
    headers: Mapping[str, str]
    start: float
    end: float


def page(title: str, text: str, *links: str, head: str = "", etag: str | None = None) -> Reply:
    """An HTML page."""
    anchors = "".join(f'<a href="{link}">to {number}</a>' for number, link in enumerate(links, 1))
    body = f"<!doctype html><title>{title}</title>{head}<h1>{title}</h1><p>{text}</p><nav>{anchors}</nav>"
    return Reply(body=body.encode(), headers={"Content-Type": "text/html; charset=utf-8"}, etag=etag)


class Site:
    """All hosts, by the Host header. What was not put there is a 404; robots.txt too, unless put."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.log: list[Asked] = []
        #: called with host and path when a request has been read, before its answer is written
        self.reading: Callable[[str, str], None] = lambda host, path: None
        self._pages: dict[tuple[str, str], Reply] = {}
        self._hosts: dict[str, Reply] = {}

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def put(self, host: str, path: str, reply: Reply) -> str:
        """Set what a URL answers from now on; gives the URL."""
        self._pages[host, path] = reply
        return self.url(host, path)

    def robots(self, host: str, *lines: str) -> None:
        """Set a host's robots.txt."""
        body = "\n".join(lines).encode() + b"\n"
        self.put(host, "/robots.txt", Reply(body=body, headers={"Content-Type": "text/plain"}))

    def everything(self, host: str, reply: Reply | None) -> None:
        """Let all pages of a host answer the same; None: as they are again."""
        if reply is None:
            self._hosts.pop(host, None)
        else:
            self._hosts[host] = reply

    def reply(self, host: str, path: str) -> Reply:
        if path != "/robots.txt" and host in self._hosts:
            return self._hosts[host]
        return self._pages.get((host, path), Reply(status=404, body=b"nothing here"))

    def asked(self, host: str, path: str | None = None, since: int = 0) -> list[Asked]:
        """Requests from log entry `since` on, in the order of their start."""
        found = [one for one in self.log[since:] if one.host == host and path in (None, one.path)]
        return sorted(found, key=lambda one: one.start)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        start = time.time()
        host = self.headers["Host"].rpartition(":")[0].lower()
        reply = self.site.reply(host, self.path)
        status, body = reply.status, reply.body
        self.site.reading(host, self.path)
        time.sleep(reply.delay)
        if reply.etag is not None and self.headers["If-None-Match"] == reply.etag:
            status, body = 304, b""
        self.send_response(status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.etag is not None:
            self.send_header("ETag", reply.etag)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        asked = Asked(
            host=host, path=self.path, status=status, headers=dict(self.headers), start=start, end=time.time()
        )
        self.site.log.append(asked)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked may have been killed: nothing to say."""


@contextmanager
def serving(address: str = "127.0.0.1") -> Iterator[Site]:
    """A site that answers while the block runs."""
    site = Site(0)
    handler = type("Handler", (_Handler,), {"site": site})
    with _Server((address, 0), handler) as server:
        site.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


def zipped(size: int) -> Reply:
    """A page of that many bytes that travels as a thousandth of it."""
    headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
    return Reply(body=gzip.compress(b"<p>" + b" " * size), headers=headers)


class Crawl:
    """A lake, crawled on the cluster behind `scheduler`."""

    def __init__(self, root: Path, scheduler: str, settings: Mapping[str, dict[str, Any]]) -> None:
        self.root, self._scheduler = root, scheduler
        self.command("init", str(root))
        (root / "crawl.toml").write_text(toml(dict(settings)), encoding="utf-8")

    @property
    def store(self) -> Store:
        return open_lake(str(self.root), {}).store

    def seed(self, *urls: str, now: datetime) -> None:
        self.command("seed", str(self.root), *urls, "--now", now.isoformat())

    def round(self, now: datetime, window: timedelta | None = None) -> Done:
        """Run one round, or finish the open one."""
        options = RunOptions(rounds=1, now=now, window=window, scheduler=self._scheduler)
        (done,) = run(str(self.root), options, Progress())
        return done

    def sql(self, statement: str, round_: int | None = None) -> list[dict[str, Any]]:
        """Rows of an answer, as JSON has them."""
        pinned = () if round_ is None else ("--round", str(round_))
        answer = self.command("sql", str(self.root), statement, "--format", "json", *pinned)
        rows: list[dict[str, Any]] = json.loads(answer)
        return rows

    def explain(self, url: str, now: datetime) -> str:
        """The story of a URL in words."""
        return self.command("explain", str(self.root), url, "--now", now.isoformat())

    def facts(self, url: str, now: datetime) -> dict[str, Any]:
        """The same as data."""
        found: dict[str, Any] = json.loads(
            self.command("explain", str(self.root), url, "--now", now.isoformat(), "--format", "json")
        )
        return found

    @staticmethod
    def command(*words: str) -> str:
        """A command in this process. Raises AssertionError with what it said."""
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 0, f"crawl {' '.join(words)}: {done.output} {done.exception!r}"
        return done.stdout
