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
    multi = pycurl.CurlMulti()
    poller = select.epoll()
    known: set[int] = set()
    timeout_ms = -1

    def on_socket(what: int, fd: int, _multi: Any, _data: Any) -> None:
        if what == pycurl.POLL_REMOVE:
            known.discard(fd)
            poller.unregister(fd)
            return
        events = (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (
            select.EPOLLOUT if what & pycurl.POLL_OUT else 0
        )
        if fd in known:
            poller.modify(fd, events)
        else:
            known.add(fd)
            poller.register(fd, events)

    def on_timer(ms: int) -> None:
        nonlocal timeout_ms
        timeout_ms = ms

    multi.setopt(pycurl.M_SOCKETFUNCTION, on_socket)
    multi.setopt(pycurl.M_TIMERFUNCTION, on_timer)
    multi.setopt(pycurl.M_MAXCONNECTS, connections)
    waiting: dict[Any, tuple[list[str], list[bytes]]] = {}
    for number in range(connections):
        curl, chunks = pycurl.Curl(), []
        curl.setopt(pycurl.WRITEFUNCTION, chunks.append)
        curl.setopt(pycurl.CONNECT_TO, ["::127.0.0.1:"])
        curl.setopt(pycurl.NOSIGNAL, 1)
        mine = list(urls[number::connections])[::-1]
        curl.setopt(pycurl.URL, mine.pop())
        waiting[curl] = (mine, chunks)
        multi.add_handle(curl)
    left, came = len(urls), 0
    while left:
        events = poller.poll(None if timeout_ms < 0 else timeout_ms / 1e3)
        if not events or timeout_ms == 0:
            timeout_ms = -1
            multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        for fd, event in events:
            ready = (_IN if event & ~select.EPOLLOUT else 0) | (_OUT if event & select.EPOLLOUT else 0)
            multi.socket_action(fd, ready)
        queued = 1
        while queued:
            queued, good, bad = multi.info_read()
            if bad:
                raise RuntimeError(f"the bare loop's request failed: {bad[0][1:]}")
            for curl in good:
                left -= 1
                mine, chunks = waiting[curl]
                came += len(b"".join(chunks))
                chunks.clear()
                multi.remove_handle(curl)
                if mine:
                    curl.setopt(pycurl.URL, mine.pop())
                    multi.add_handle(curl)
    for curl in waiting:
        curl.close()
    multi.close()
    poller.close()
    return came
