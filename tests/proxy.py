"""A proxy before an S3 server that swallows answers, or fails from a given moment on.

Runs as a process of its own: `python tests/proxy.py TARGET [FILE]` prints `PORT n`; TARGET is
http://127.0.0.1:port. Without FILE it swallows: the answer to the first PUT of each Delta log entry (but a
table's first) is dropped by closing the connection, so the object is stored and the client never hears of it.
With FILE it forwards everything until there is a file of that name, and then answers 500 to everything.
"""

from __future__ import annotations

import http.client
import http.server
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit


class _Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target = ""
    switch = ""  # name of the file that makes it fail; empty: it swallows instead
    swallowed: set[str] = set()  # noqa: RUF012 - one server a process

    def log_message(self, *args: object) -> None:
        """Nobody reads it."""

    def _forward(self) -> None:
        body = self._body()
        if self.switch and os.path.exists(self.switch):
            self.send_response(500)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        connection = http.client.HTTPConnection(self.target, timeout=30)
        headers = {
            k: v for k, v in self.headers.items() if k.lower() not in ("transfer-encoding", "connection")
        }
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if self._to_swallow():
            self.close_connection = True
            return
        self.send_response(answer.status)
        skip = ("transfer-encoding", "connection", "content-length", "date", "server")
        for name, value in answer.getheaders():
            if name.lower() not in skip:
                self.send_header(name, value)
        length = answer.getheader("content-length") if self.command == "HEAD" else None
        self.send_header("content-length", length or str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _body(self) -> bytes | None:
        if "chunked" not in (self.headers.get("transfer-encoding") or ""):
            length = int(self.headers.get("content-length") or 0)
            return self.rfile.read(length) if length else None
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _to_swallow(self) -> bool:
        entry = "_delta_log" in self.path and self.path.endswith(".json")
        if (
            self.switch
            or self.command != "PUT"
            or not entry
            or self.path.endswith("/00000000000000000000.json")
        ):
            return False
        if self.path in self.swallowed:
            return False
        self.swallowed.add(self.path)
        return True

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward  # noqa: N815 - names of http.server


@dataclass(frozen=True, slots=True)
class Switch:
    """A proxy that forwards until it is told to fail."""

    endpoint: str
    server: subprocess.Popen[str]
    file: str

    def fail(self, *, refuse: bool) -> None:
        """From now on refuse connections, or answer 500 to every request."""
        if refuse:
            self.server.kill()
            self.server.wait()
        else:
            with open(self.file, "w", encoding="ascii"):
                pass


@contextmanager
def swallowing(target: str) -> Iterator[str]:
    """A running proxy before `target`; yields its endpoint."""
    with _running(target) as (endpoint, _):
        yield endpoint


@contextmanager
def failing(target: str) -> Iterator[Switch]:
    """A running proxy before `target` that can be told to fail."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/fails"
        with _running(target, file) as (endpoint, server):
            yield Switch(endpoint, server, file)


@contextmanager
def _running(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    server = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().split()[1]}", server
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def _main(target: str, switch: str = "") -> None:
    _Proxy.target, _Proxy.switch = urlsplit(target).netloc, switch
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    server.daemon_threads = True
    print("PORT", server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    _main(*sys.argv[1:])
