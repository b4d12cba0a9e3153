"""A name server on loopback that says exactly what a test wants, over UDP and TCP, and remembers who asked.

It speaks just enough of RFC 1035 to tell the truth and to lie: any records, any rcode, truncated, slow,
silent, garbage, another answer each time. It runs in threads of its own, so that a process under test may be
asked for its names while the test waits for it.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_address

A, CNAME, AAAA = 1, 5, 28
NXDOMAIN, SERVFAIL, REFUSED = 3, 2, 5


@dataclass(frozen=True, slots=True)
class Question:
    """One question as it came."""

    name: str
    kind: int
    tcp: bool
    packet: bytes
    end: int  # of the question in the packet
    number: int  # how often this name and kind was asked before
    at: float  # time.monotonic()


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered: records as (owner, kind, ttl, address or name); `raw` instead of all that."""

    records: tuple[tuple[str, int, int, str], ...] = ()
    rcode: int = 0
    truncated: bool = False
    wait: float = 0.0
    raw: bytes | None = None


Say = Callable[[Question], Reply | None]


@dataclass
class DnsServer:
    """Answers by name; a name it does not have does not exist. `asked` lists every question."""

    says: dict[str, Say] = field(default_factory=dict)
    asked: list[Question] = field(default_factory=list)
    port: int = 0
    open_at_once: int = 0  # the most questions that waited for their answer together

    def times(self, name: str, kind: int = A) -> int:
        return sum(q.name == name and q.kind == kind for q in self.asked)

    @property
    def setting(self) -> str:
        """As `[dns] servers` has it."""
        return f"127.0.0.1:{self.port}"

    def reply(self, packet: bytes, *, tcp: bool) -> Reply | None:
        """What is said to this packet, with `raw` filled in. None: nothing."""
        name, kind, end = _question(packet)
        number = self.times(name, kind)
        question = Question(name, kind, tcp, packet, end, number, time.monotonic())
        self.asked.append(question)
        say = self.says.get(name, self.says.get("*" + name[name.find(".") :], nothing))
        said = say(question)
        if said is None or said.raw is not None:
            return said
        cut = said.truncated and not tcp
        flags = 0x8180 | said.rcode | (0x0200 if cut else 0)
        records = () if cut else said.records
        head = packet[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0)
        return replace(said, raw=head + packet[12:end] + b"".join(map(_record, records)))


def _question(packet: bytes) -> tuple[str, int, int]:
    at, labels = 12, []
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode("latin-1"))
        at += packet[at] + 1
    return ".".join(labels).lower(), struct.unpack_from(">H", packet, at + 1)[0], at + 5


def _name(name: str) -> bytes:
    labels = [label.encode("latin-1") for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _record(record: tuple[str, int, int, str]) -> bytes:
    owner, kind, ttl, value = record
    data = _name(value) if kind == CNAME else ip_address(value).packed
    return _name(owner) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


@contextmanager
def serving(**says: Say) -> Iterator[DnsServer]:
    """A running server; `says` by name, with `_` for the dots."""
    server = DnsServer({name.replace("_", "."): say for name, say in says.items()})
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tcp.bind(("127.0.0.1", 0))
        server.port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", server.port))
        tcp.listen()
        threads = [
            threading.Thread(target=_datagrams, args=(server, udp), daemon=True),
            threading.Thread(target=_connections, args=(server, tcp), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield server
        finally:
            for listener in (udp, tcp):
                _end(listener)
            for thread in threads:
                thread.join()


def _end(listener: socket.socket) -> None:
    """Wakes the thread that waits on this socket, and tells it that it is over."""
    try:
        listener.shutdown(socket.SHUT_RDWR)  # wakes it; a datagram socket is woken although it says ENOTCONN
    except OSError:
        pass


def _datagrams(server: DnsServer, listener: socket.socket) -> None:
    waiting = 0
    while True:
        try:
            packet, peer = listener.recvfrom(65_535)
        except OSError:
            return
        if not packet:  # shut down
            return
        said = server.reply(packet, tcp=False)
        if said is None or said.raw is None:
            continue
        if not said.wait:
            listener.sendto(said.raw, peer)
            continue
        waiting += 1
        server.open_at_once = max(server.open_at_once, waiting)

        def later(raw: bytes = said.raw, peer: object = peer) -> None:
            nonlocal waiting
            waiting -= 1
            try:
                listener.sendto(raw, peer)  # type: ignore[arg-type]
            except OSError:
                pass  # the test is over

        timer = threading.Timer(said.wait, later)
        timer.daemon = True
        timer.start()


def _connections(server: DnsServer, listener: socket.socket) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer, peer.makefile("rwb") as stream:
            while len(length := stream.read(2)) == 2:
                said = server.reply(stream.read(int.from_bytes(length, "big")), tcp=True)
                if said is None or said.raw is None:
                    break
                time.sleep(said.wait)
                stream.write(len(said.raw).to_bytes(2, "big") + said.raw)
                stream.flush()


# --- what a name can say ------------------------------------------------------------------------------------


def leads_to(*addresses: str, ttl: int = 60) -> Say:
    """These addresses, each to the question for its kind."""

    def say(question: Question) -> Reply:
        kinds = [(AAAA if ":" in address else A, address) for address in addresses]
        return Reply(tuple((question.name, kind, ttl, a) for kind, a in kinds if kind == question.kind))

    return say


def alias(*names: str, to: tuple[str, ...] = (), ttl: int = 60, ttls: tuple[int, ...] = ()) -> Say:
    """A chain of aliases, one record each, and the addresses of the last name."""

    def say(question: Question) -> Reply:
        chain = (question.name, *names)
        lives = ttls or (ttl,) * len(names)
        records = [(chain[i], CNAME, lives[i], chain[i + 1]) for i in range(len(names))]
        kinds = [(AAAA if ":" in address else A, address) for address in to]
        records += [(chain[-1], kind, ttl, address) for kind, address in kinds if kind == question.kind]
        return Reply(tuple(records))

    return say


def code(rcode: int) -> Say:
    """An answer that is an error."""
    return lambda _: Reply(rcode=rcode)


def nothing(_: Question) -> Reply:
    """There is no such name."""
    return Reply(rcode=NXDOMAIN)


def silence(_: Question) -> None:
    """No answer at all."""


def slow(seconds: float, say: Say) -> Say:
    """The same, later."""

    def later(question: Question) -> Reply | None:
        said = say(question)
        return None if said is None else replace(said, wait=seconds)

    return later


def truncated(say: Say) -> Say:
    """Over UDP only that there is more."""

    def cut(question: Question) -> Reply | None:
        said = say(question)
        return None if said is None else replace(said, truncated=True)

    return cut


def garbage(data: bytes, *, keep_id: bool = True) -> Say:
    """No DNS message."""
    return lambda question: Reply(raw=(question.packet[:2] if keep_id else b"") + data)


def in_turn(*says: Say) -> Say:
    """The first time the first, the second time the second; the last one from then on."""
    return lambda question: says[min(question.number, len(says) - 1)](question)
