"""A proxy before an S3 server that swallows answers: the object is stored, the client never hears of it.

Runs as a process of its own: `python tests/proxy.py TARGET` prints `PORT n`; TARGET is http://127.0.0.1:port.
The answer to the first PUT of each Delta log entry (but a table's first) is dropped by closing the connection.
"""

from __future__ import annotations

import http.client
import http.server
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


class _Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target = ""
    swallowed: set[str] = set()  # noqa: RUF012 - one server a process

    def log_message(self, *args: object) -> None:
        """Nobody reads it."""

    def _forward(self) -> None:
        body = self._body()
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
        if self.command != "PUT" or not entry or self.path.endswith("/00000000000000000000.json"):
            return False
        if self.path in self.swallowed:
            return False
        self.swallowed.add(self.path)
        return True

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward  # noqa: N815 - names of http.server


@contextmanager
def swallowing(target: str) -> Iterator[str]:
    """A running proxy before `target`; yields its endpoint."""
    server = subprocess.Popen([sys.executable, __file__, target], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().split()[1]}"
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def _main(target: str) -> None:
    _Proxy.target = urlsplit(target).netloc
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    server.daemon_threads = True
    print("PORT", server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    _main(sys.argv[1])
