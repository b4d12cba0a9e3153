"""libcurl's multi interface on an asyncio loop: handles go in, and come out when their transfer has ended.

Theory. pycurl's own AsyncCurlMulti has asyncio watch every socket and gives every transfer a future; that
costs more than the transfer (docs/decisions/023). Here all sockets are watched by one epoll object, which
asyncio watches as one descriptor: a wake-up handles everything that is ready in one go, as a bare loop would.
A socket whose connection is idle stays registered, because it will be used again; if it speaks up meanwhile
(its peer closed it), it is taken out. A number that the system hands out anew is registered anew: whoever
opens a socket says so (`opened`).

What always holds: `ended` is called once for every handle that was started, never from within `start` or
`drop`, and outside libcurl's callbacks, so that it may start the next one. `settled` is called after each
batch of ends.
It knows no HTTP; what a handle carries is crawl.net.transport's.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import pycurl

__all__ = ["CurlLoop"]

#: sockets handled in one go, and batches of ends, before the loop may do something else
_EVENTS: Final = 256
_BATCHES: Final = 8
#: … and seconds: what an answer teaches can take long (a robots.txt of 500 KiB, a bomb)
_SLICE: Final = 0.02
_IN: Final = pycurl.CSELECT_IN
_OUT: Final = pycurl.CSELECT_OUT
_TIMEOUT: Final = pycurl.SOCKET_TIMEOUT
_REMOVE: Final = pycurl.POLL_REMOVE
_READY: Final = {
    select.EPOLLIN: _IN,
    select.EPOLLOUT: _OUT,
    select.EPOLLIN | select.EPOLLOUT: _IN | _OUT,
}
#: hang-ups and errors show in whatever libcurl tries next
_ANY: Final = _IN | _OUT | pycurl.CSELECT_ERR
_WATCHED: Final = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}


class CurlLoop:
    """Drives transfers on the running loop. Handles stay the caller's."""

    def __init__(
        self, ended: Callable[[Any, int, str], None], settled: Callable[[], None], connections: int
    ) -> None:
        """`ended`: told of a handle, libcurl's code (0 = none, also for a dropped one) and its message.

        `connections`: how many are kept open between transfers, at most.
        """
        self._ended = ended
        self._settled = settled
        self._multi: Any = pycurl.CurlMulti()
        self._add: Callable[[Any], None] = self._multi.add_handle
        self._remove: Callable[[Any], None] = self._multi.remove_handle
        self._action: Callable[[int, int], Any] = self._multi.socket_action
        self._read: Callable[[], Any] = self._multi.info_read
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._epoll = select.epoll()
        self._registered: dict[int, int] = {}  # what each socket is watched for in the epoll object
        self._idle: set[int] = set()  # of those: libcurl does not wait for them now
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[Any] = set()
        self._dropped: list[Any] = []
        self._over: deque[tuple[Any, int, str]] = deque()  # ended, and not told yet
        self._at_once = False  # libcurl wants to go on without any socket
        self._working = False
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None  # when libcurl wants to be called, on the loop's clock

    def start(self, curl: Any) -> None:
        """Begins the handle's transfer."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._epoll.fileno(), self._ready)
        self._add(curl)
        self._running.add(curl)

    def drop(self, curl: Any) -> bool:
        """Ends the handle's transfer. False: it has ended already, or was not started."""
        if curl not in self._running:
            return False
        self._running.remove(curl)
        self._remove(curl)
        self._dropped.append(curl)
        self._go_on_soon()
        return True

    def opened(self, fd: int) -> None:
        """A socket with this number was opened for libcurl: what was known of the number is past."""
        self._registered.pop(fd, None)
        self._idle.discard(fd)

    def close(self) -> None:
        """Closes all connections. No transfer may be under way."""
        while self._over or self._dropped:
            self._tell()
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._soon = self._timer = None
        if self._loop is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._loop = None
        self._multi.close()
        self._epoll.close()

    # --- what libcurl asks for: no exception may leave these ------------------------------------------------

    def _on_socket(self, what: int, fd: int, _multi: Any, _data: Any) -> None:
        if what == _REMOVE:
            if fd in self._registered:
                self._idle.add(fd)
            return
        self._idle.discard(fd)
        events = _WATCHED.get(what, 0)
        before = self._registered.get(fd)
        if events == before:
            return
        try:
            if before is None:
                self._epoll.register(fd, events)
            else:
                self._epoll.modify(fd, events)
        except FileExistsError:
            self._epoll.modify(fd, events)
        except FileNotFoundError:
            self._epoll.register(fd, events)
        self._registered[fd] = events

    def _on_timer(self, ms: int) -> None:
        if ms == 0:
            self._at_once = True
            self._due = None
            self._go_on_soon()
        elif ms < 0:
            self._due = None
        else:
            assert self._loop is not None
            self._due = self._loop.time() + ms / 1e3
            self._set_timer()

    def _set_timer(self) -> None:
        """One timer, set anew only where it would come too late: libcurl changes its mind all the time."""
        assert self._loop is not None
        assert self._due is not None
        if self._timer is not None:
            if self._timer.when() <= self._due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due, self._timed)

    # --- the work -------------------------------------------------------------------------------------------

    def _go_on_soon(self) -> None:
        if not self._working and self._soon is None and self._loop is not None:
            self._soon = self._loop.call_soon(self._go_on)

    def _timed(self) -> None:
        self._timer = None
        if self._due is None or self._loop is None:
            return
        if self._due > self._loop.time():
            self._set_timer()
            return
        self._due = None
        self._at_once = True
        self._go_on()

    def _ready(self) -> None:
        """Some sockets are ready."""
        action, idle = self._action, self._idle
        self._working = True
        until = time.monotonic() + _SLICE
        try:
            for fd, event in self._epoll.poll(0, _EVENTS):
                if fd in idle:
                    with contextlib.suppress(OSError):  # closed by now
                        self._epoll.unregister(fd)
                    self.opened(fd)
                else:
                    action(fd, _READY.get(event, _ANY))
                    if time.monotonic() > until:
                        break  # the others are still ready next time
        finally:
            self._working = False
        self._go_on()

    def _go_on(self) -> None:
        """Let libcurl begin what it wants to begin, and tell what has ended, until nothing more happens."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._loop is None:
            return
        self._working = True
        try:
            for _ in range(_BATCHES):
                if self._at_once:
                    self._at_once = False
                    self._action(_TIMEOUT, 0)
                if (not self._tell() and not self._at_once) or self._over:
                    return
        finally:
            self._working = False
            if self._at_once or self._dropped or self._over:
                self._go_on_soon()

    def _tell(self) -> bool:
        """Tell of the transfers that have ended, as far as there is time; whether there were any."""
        over: list[tuple[Any, int, str]] = []
        left = 1
        while left:
            left, good, bad = self._read()
            for curl in good:
                over.append((curl, 0, ""))
            over += bad
        for curl, _, _ in over:  # all of them first: whoever is told may drop others
            self._remove(curl)
            self._running.remove(curl)
        waiting = self._over
        waiting += over
        if self._dropped:
            waiting += [(curl, 0, "") for curl in self._dropped]
            self._dropped.clear()
        if not waiting:
            return False
        until = time.monotonic() + _SLICE
        while waiting:
            curl, code, message = waiting.popleft()
            try:
                self._ended(curl, code, message)
            except Exception as error:  # noqa: BLE001 - the others must be told all the same
                self._report(error)
            if time.monotonic() > until:
                break
        self._settled()
        return True

    def _report(self, error: Exception) -> None:
        if self._loop is not None:
            context = {"message": "a transfer's end could not be handled", "exception": error}
            self._loop.call_exception_handler(context)
