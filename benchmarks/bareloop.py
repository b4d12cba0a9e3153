"""The least that libcurl costs: `socket_action` below an epoll loop, and a write callback. Nothing else.

One handle a connection, each asking one URL after the other; a body is collected and dropped. No deadline, no
header is looked at, nothing is decoded, checked, kept or waited for. The measure for everything that does.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any, Final

import pycurl

__all__ = ["ask"]

_IN: Final = pycurl.CSELECT_IN
_OUT: Final = pycurl.CSELECT_OUT


def ask(urls: Sequence[str], connections: int) -> int:
    """Asks all `urls` of a server on 127.0.0.1 over so many connections; the bytes of bodies that came."""
    loop = _Loop(connections)
    for number in range(connections):
        loop.begin(list(urls[number::connections])[::-1])
    loop.run(len(urls))
    loop.close()
    return loop.came


class _Loop:
    def __init__(self, connections: int) -> None:
        self.came = 0
        self._poller = select.epoll()
        self._known: set[int] = set()
        self._timeout_ms = -1
        self._waiting: dict[Any, tuple[list[str], list[bytes]]] = {}
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)

    def _on_socket(self, what: int, fd: int, _multi: Any, _data: Any) -> None:
        if what == pycurl.POLL_REMOVE:
            self._known.discard(fd)
            self._poller.unregister(fd)
            return
        events = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (
            select.EPOLLOUT if what & pycurl.POLL_OUT else 0
        )
        if fd in self._known:
            self._poller.modify(fd, events)
        else:
            self._known.add(fd)
            self._poller.register(fd, events)

    def _on_timer(self, ms: int) -> None:
        self._timeout_ms = ms

    def begin(self, urls: list[str]) -> None:
        """A connection that asks these, the last one first."""
        curl, chunks = pycurl.Curl(), []  # type: ignore[var-annotated]
        curl.setopt(pycurl.WRITEFUNCTION, chunks.append)
        curl.setopt(pycurl.CONNECT_TO, ["::127.0.0.1:"])
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.URL, urls.pop())
        self._waiting[curl] = (urls, chunks)
        self._multi.add_handle(curl)

    def run(self, count: int) -> None:
        """Until so many have ended."""
        action = self._multi.socket_action
        while count:
            events = self._poller.poll(None if self._timeout_ms < 0 else self._timeout_ms / 1e3)
            if not events or self._timeout_ms == 0:
                self._timeout_ms = -1
                action(pycurl.SOCKET_TIMEOUT, 0)
            for fd, event in events:
                action(
                    fd, (_IN if event & ~select.EPOLLOUT else 0) | (_OUT if event & select.EPOLLOUT else 0)
                )
            queued = 1
            while queued:
                queued, good, bad = self._multi.info_read()
                if bad:
                    raise RuntimeError(f"the bare loop's request failed: {bad[0][1:]}")
                count -= len(good)
                for curl in good:
                    self._next(curl)

    def _next(self, curl: Any) -> None:
        urls, chunks = self._waiting[curl]
        self.came += len(b"".join(chunks))
        chunks.clear()
        self._multi.remove_handle(curl)
        if urls:
            curl.setopt(pycurl.URL, urls.pop())
            self._multi.add_handle(curl)

    def close(self) -> None:
        for curl in self._waiting:
            curl.close()
        self._multi.close()
        self._poller.close()
