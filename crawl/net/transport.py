"""HTTP over libcurl, for one event loop: one request in, one typed answer out.

What always holds: nothing a peer does raises. A request goes to the address it was pinned to (by CONNECT_TO:
kept connections ignore RESOLVE), and to none the guard refuses: asked before a socket is opened, and again of
the peer on the connection used, kept ones included. One `Request` is one request on the wire: libcurl's
silent second try on a dead kept connection is refused and told as `STALE`. Redirects, cookies, proxies and
.netrc are not followed, kept or read. Bodies stream through our own decoders under caps; what all transfers
hold stays under a byte budget. Every transfer has a deadline here, besides libcurl's own.
It resolves no name, waits for no host's turn and retries nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

import pycurl

from crawl import policy
from crawl.net import faults
from crawl.net.budget import Budget
from crawl.net.content import ACCEPT_ENCODING
from crawl.net.curlloop import CurlLoop
from crawl.net.egress import Guard
from crawl.net.exchange import DROPPED, STALE, Answer, Request
from crawl.net.incoming import Incoming, settle
from crawl.net.trust import Trust
from crawl.outcomes import Outcome

__all__ = ["Answer", "Request", "Transport"]

#: connections kept open between requests
_KEPT_CONNECTIONS: Final = 1_000
#: how often deadlines and idle limits are looked at, at most (seconds)
_SWEEP: Final = 0.5
_ACCEPT: Final = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_HEADERS: Final = (_ACCEPT, f"Accept-Encoding: {ACCEPT_ENCODING}")

_HTTP_VERSIONS: Final = {
    pycurl.CURL_HTTP_VERSION_1_0: "1.0",
    pycurl.CURL_HTTP_VERSION_1_1: "1.1",
    pycurl.CURL_HTTP_VERSION_2_0: "2",
}
#: looked up once: pycurl's names, for what every request needs
_URL: Final = pycurl.URL
_CONNECTED: Final = pycurl.CONNECT_TIME
_SECURED: Final = pycurl.APPCONNECT_TIME
_FIRST_BYTE: Final = pycurl.STARTTRANSFER_TIME
_CONNECTS: Final = pycurl.NUM_CONNECTS
_VERSION: Final = pycurl.INFO_HTTP_VERSION
_GO: Final = int(pycurl.PREREQFUNC_OK)
#: the byte budget is about large bodies: the first bytes of each are not counted
_UNCOUNTED: Final = 65_536
#: reasons to stop under which what came in is no answer
_NO_ANSWER: Final = frozenset({"header_bytes", "header_lines", DROPPED})


class Transport:
    """Sends requests for one event loop; an async context manager. Handles are pooled, connections kept."""

    def __init__(
        self,
        guard: Guard,
        limits: policy.Limits,
        agent: policy.Agent,
        *,
        budget: int = policy.Fetching().in_flight_bytes,
        tls: policy.Tls = policy.Tls(),  # noqa: B008 - frozen
        permit: Callable[[], bool] = lambda: True,
    ) -> None:
        """`budget`: bytes in flight of large bodies. Raises SettingsError for a `tls.ca_file` that is none.

        `permit`: asked once more when a connection stands, right before the request goes out: a process that
        was stopped in between may have lost the right to send it (answered with the reason `DROPPED`).
        """
        self.guard = guard
        self.permit = permit
        self.limits = limits
        self._agent = agent
        self._trust = Trust(tls.ca_file)
        self.loop = CurlLoop(self._end, self._settled, _KEPT_CONNECTIONS)
        self._pool: list[_Transfer] = []
        self._active: dict[Any, _Transfer] = {}  # by handle
        #: called when answers that came together have been delivered
        self.settled: Callable[[], None] = lambda: None
        self._sweeper: asyncio.TimerHandle | None = None
        self._patience = limits.request_deadline.total_seconds()
        seconds = (limits.request_deadline.total_seconds(), limits.idle.total_seconds())
        self._sweep_every = min(_SWEEP, *(s / 4 for s in seconds))
        self.budget: Budget[_Transfer] = Budget(budget)

    async def __aenter__(self) -> Transport:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Drops open transfers and closes every connection."""
        self.drop_all()
        await asyncio.sleep(0)  # the dropped transfers tell their askers
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self.loop.close()
        for transfer in self._pool:
            transfer.curl.close()
        self._pool.clear()
        self._trust.close()

    @property
    def in_flight(self) -> int:
        """Transfers that have begun and not ended."""
        return len(self._active)

    async def get(self, request: Request) -> Answer:
        """Sends one request and gives its answer. Cancelling drops the transfer."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def deliver(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        transfer = self._start(request, deliver)
        try:
            return await answered
        except asyncio.CancelledError:
            self._drop(transfer, DROPPED)
            raise

    def start(self, request: Request, deliver: Callable[[Answer], None]) -> None:
        """Sends one request; `deliver` is called with its answer from the loop, once."""
        self._start(request, deliver)

    def drop_all(self) -> None:
        """Ends every open transfer at once; their askers get an answer with the reason `DROPPED`."""
        for transfer in list(self._active.values()):
            self._drop(transfer, DROPPED)

    def _start(self, request: Request, deliver: Callable[[Answer], None]) -> _Transfer:
        transfer = self._pool.pop() if self._pool else _Transfer(self, self._new_handle())
        now = time.monotonic()  # what asyncio's loop has for a clock
        transfer.prepare(request, deliver, now, now + self._patience - request.spent_ms / 1e3)
        self._active[transfer.curl] = transfer
        self.loop.start(transfer.curl)
        if self._sweeper is None:
            self._sweep()
        return transfer

    def _drop(self, transfer: _Transfer, reason: str) -> None:
        if self.loop.drop(transfer.curl):
            transfer.incoming.stop = reason

    def _end(self, curl: Any, code: int, message: str) -> None:
        """A transfer is over: hand on its answer, then give back what it held."""
        transfer = self._active.pop(curl)
        answer = transfer.answer(code, message, time.monotonic())
        deliver = transfer.deliver
        self._pool.append(transfer)
        try:
            deliver(answer)
        finally:
            for waiting in self.budget.release(transfer):
                waiting.resume(answer.ended)

    def _settled(self) -> None:
        self.settled()

    def _sweep(self) -> None:
        """Ends what has outlived its deadline or been silent for too long."""
        if not self._active:
            self._sweeper = None
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        idle = self.limits.idle.total_seconds()
        for transfer in list(self._active.values()):
            if transfer.paused_at is not None:
                continue
            if now >= transfer.deadline:
                self._drop(transfer, "deadline")
            elif not transfer.incoming.drain():
                self._drop(transfer, transfer.incoming.stop or "")
            elif transfer.silent(now) >= idle:
                self._drop(transfer, "idle")
        self._sweeper = loop.call_later(self._sweep_every, self._sweep)

    def _new_handle(self) -> Any:
        """A handle with everything that never changes."""
        limits = self.limits
        options: dict[int, Any] = {
            pycurl.NOSIGNAL: 1,
            pycurl.PROXY: "",  # also overrules http_proxy in the environment
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.USERAGENT: self._agent.header(),
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_2TLS,
            pycurl.CONNECTTIMEOUT_MS: max(1, round(limits.connect_timeout.total_seconds() * 1e3)),
            # a second belt: the sweep comes first, except for a transfer that waits for the byte budget
            pycurl.TIMEOUT_MS: round(limits.request_deadline.total_seconds() * 1e4 + 60_000),
            pycurl.BUFFERSIZE: 65_536,  # fewer reads a body than with the default of 16 KiB
            pycurl.MAXAGE_CONN: max(1, round(limits.keep_alive.total_seconds())),
        }
        if self._trust.path is not None:
            options[pycurl.CAINFO] = self._trust.path
        curl = pycurl.Curl()
        for option, value in options.items():
            curl.setopt(option, value)
        return curl


class _Transfer:
    """One pooled handle with its callbacks, which are set once, and the request it carries now."""

    deliver: Callable[[Answer], None]

    def __init__(self, owner: Transport, curl: Any) -> None:
        self._owner = owner
        self.curl = curl
        self.incoming = Incoming(owner.limits)
        self._pin: str | None = None
        self._headers: tuple[str, ...] | None = None
        self._set: Callable[[int, Any], None] = curl.setopt
        self._info: Callable[[int], Any] = curl.getinfo
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.PREREQFUNCTION, self._before_request)
        curl.setopt(pycurl.HEADERFUNCTION, self.incoming.pending.append)
        curl.setopt(pycurl.WRITEFUNCTION, self._data)

    def prepare(
        self, request: Request, deliver: Callable[[Answer], None], now: float, deadline: float
    ) -> None:
        self._set(_URL, request.url)
        if request.pin != self._pin:
            self._pin = request.pin
            pin = f"[{request.pin}]" if ":" in request.pin else request.pin
            self._set(pycurl.CONNECT_TO, [f"::{pin}:"])  # any host, any port: to this address, same port
        if request.headers != self._headers:
            self._headers = request.headers
            self._set(pycurl.HTTPHEADER, [*_HEADERS, *request.headers])
        self.incoming.reset(request.decoded_bytes, request.screen, request.body_bytes)
        self.deliver = deliver
        self.deadline = deadline
        self.paused_at: float | None = None
        self._began = self._active_at = now
        self._progress = 0
        self._peer: str | None = None
        self._secure = request.url[:5] == "https"
        self._denied: str | None = None
        self._resent = False

    # --- libcurl's callbacks: they must not raise -----------------------------------------------------------

    def _open_socket(self, purpose: int, address: Any) -> int:
        ip, port = address.addr[:2]
        if not self._owner.guard.permits_port(ip, port):
            self._denied = f"{ip} port {port}"
            return int(pycurl.SOCKET_BAD)
        try:
            fd = socket.socket(address.family, address.socktype, address.protocol).detach()
        except OSError:  # no descriptors left, or no such family on this machine
            return int(pycurl.SOCKET_BAD)
        self._owner.loop.opened(fd)
        return fd

    def _before_request(self, peer: str, _local: str, port: int, _local_port: int) -> int:
        if self._peer is not None:
            self._resent = True  # the kept connection was dead: asking again is not libcurl's to decide
            return int(pycurl.PREREQFUNC_ABORT)
        self._peer = peer
        if not self._owner.permit():
            self.incoming.stop = DROPPED
            return int(pycurl.PREREQFUNC_ABORT)
        if not self._owner.guard.permits_port(peer, port):
            self._denied = f"{peer} port {port}"
            return int(pycurl.PREREQFUNC_ABORT)
        return _GO

    def _data(self, data: bytes) -> int | None:
        incoming = self.incoming
        before = incoming.length
        if before + len(data) <= min(incoming.free, _UNCOUNTED):
            incoming.take(data)
            return None
        if not incoming.drain():
            return 0
        counted = before >= _UNCOUNTED
        if counted and not self._owner.budget.admits(self, len(data)):
            self.paused_at = asyncio.get_running_loop().time()
            return int(pycurl.WRITEFUNC_PAUSE)
        going_on = incoming.data(data)
        if (
            incoming.length > _UNCOUNTED
        ):  # what decoding added counts as well: the next piece may have to wait
            grown = incoming.length - max(before, _UNCOUNTED)
            self._owner.budget.add(self, grown - len(data) if counted else grown)
        return None if going_on else 0

    # --- bounds ---------------------------------------------------------------------------------------------

    def silent(self, now: float) -> float:
        """Seconds without a byte, as far as sweeps can tell; connecting has a limit of its own."""
        progress = self.incoming.progress
        if self._peer is None or progress != self._progress:
            self._progress = progress
            self._active_at = now
        return now - self._active_at

    def resume(self, now: float) -> None:
        """Go on after waiting for the byte budget; the wait does not count."""
        if self.paused_at is not None:
            self.deadline += now - self.paused_at
            self._active_at = now
            self.paused_at = None
        with contextlib.suppress(pycurl.error):  # it ends with its own error then
            self.curl.pause(pycurl.PAUSE_CONT)

    # --- the end --------------------------------------------------------------------------------------------

    def answer(self, code: int, message: str, now: float) -> Answer:
        """What became of the request. `code`: libcurl's, 0 = none, also for transfers we ended."""
        incoming = self.incoming
        incoming.drain()
        stop = incoming.stop
        coding_fault = incoming.end(whole=code == 0 and stop is None)
        status = incoming.status
        headed = incoming.headed and status is not None and status >= 200 and stop not in _NO_ANSWER
        if headed and self._denied is None and not self._resent:
            assert status is not None
            fault = stop or (faults.of_body(code, message) if code else coding_fault)
            outcome, reason, truncated = settle(incoming, status, fault)
        else:
            truncated = False
            status = None
            outcome, reason = self._failure(code, message, stop)
        info = self._info
        connected = info(_CONNECTED)
        secured = info(_SECURED) if self._secure else 0.0
        fresh = info(_CONNECTS) > 0
        return Answer(
            outcome=outcome,
            reason=reason,
            began=self._began,
            ended=now,
            status=status,
            headers=incoming.lines() if status is not None else "",
            pieces=incoming.pieces(),
            size=incoming.length,
            wire_bytes=incoming.wire,
            truncated=truncated,
            http_version=_HTTP_VERSIONS.get(info(_VERSION)) if status else None,
            address=self._peer or self._pin,
            reused=not fresh if self._peer is not None else None,
            connect_ms=connected * 1e3 if self._peer is not None else None,
            tls_ms=max(0.0, secured - connected) * 1e3 if secured > 0 else None,
            first_byte_ms=info(_FIRST_BYTE) * 1e3 if status is not None else None,
            sniffed_type=incoming.verdict.media_type if incoming.verdict is not None else None,
        )

    def _failure(self, code: int, message: str, stop: str | None) -> tuple[Outcome, str]:
        """Outcome and reason of a request without an answer."""
        if stop == DROPPED:
            return Outcome.RESET, DROPPED
        if self._denied is not None:
            return Outcome.EGRESS_DENIED, self._denied
        if self._resent:
            return Outcome.RESET, STALE
        connected = self._peer is not None
        if stop in ("deadline", "idle"):
            return Outcome.TIMEOUT if connected else Outcome.CONNECT_TIMEOUT, stop
        if stop is not None:
            return Outcome.MALFORMED, stop
        if code == 0:  # libcurl takes a head that ends with the connection for an answer
            interim = self.incoming.headed and self.incoming.status is not None
            return (Outcome.MALFORMED, "interim_only") if interim else (Outcome.RESET, "head_cut")
        info = self.curl.getinfo
        verify, system = info(pycurl.SSL_VERIFYRESULT), info(pycurl.OS_ERRNO)
        return faults.of_request(code, message, verify=verify, system=system, connected=connected)
