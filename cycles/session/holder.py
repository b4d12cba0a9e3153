"""Who drives a lake: one driver at a time, known by name, fenced by number.

Theory. A driver takes a lock file on its own machine, writes a heartbeat object into the lake, and only
then takes the next fence number (lake.fence): a number that is newer ends the power of all older ones,
whatever they believe. Every L/3 it rewrites the heartbeat. A second driver finds the last fence and asks,
in this order: was it released? was its lock on this very machine dropped (the process is gone)? does its
heartbeat stand still for 2L by the second driver's own clock? Only then it goes on; a heartbeat that moves
ends it with LakeBusy, which names the holder.

What always holds: a clock of another machine is never compared with ours.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from crawl.errors import LakeBusy, LakeError
from cycles.session.clock import boot_id, boottime, utcnow
from cycles.session.workspace import WORK
from lake.store import Store

__all__ = ["Heartbeat", "Lock", "Who", "drive", "heartbeat_path", "lock_is_free"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """A process that holds something: enough to name it and to tell, on its machine, whether it lives."""

    host: str
    pid: int
    boot: str
    token: str
    lock: str
    since: str

    @classmethod
    def me(cls, lock: Lock) -> Self:
        """This process, holding that lock."""
        return cls(
            host=socket.gethostname(),
            pid=os.getpid(),
            boot=boot_id(),
            token=lock.token,
            lock=str(lock.path),
            since=utcnow().isoformat(timespec="seconds"),
        )

    def plain(self) -> dict[str, str]:
        """As JSON and commit metadata carry it."""
        return {
            "host": self.host,
            "pid": str(self.pid),
            "boot": self.boot,
            "token": self.token,
            "lock": self.lock,
            "since": self.since,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Inverse of `plain`."""
        return cls(
            host=str(plain["host"]),
            pid=int(plain["pid"]),
            boot=str(plain["boot"]),
            token=str(plain["token"]),
            lock=str(plain["lock"]),
            since=str(plain["since"]),
        )

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class Lock:
    """A file lock on this machine that the system drops when its process ends, however it ends."""

    def __init__(self, path: Path, token: str, file: int) -> None:
        self.path, self.token, self._file = path, token, file

    @classmethod
    def take(cls) -> Self:
        """A new lock under a name that nobody else has. Raises LakeError where no file can be made for it."""
        folder = Path(tempfile.gettempdir()) / f"crawl-cycles-{os.getuid()}"
        token = secrets.token_hex(8)
        path = folder / f"{token}.lock"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            os.write(file, token.encode())
        except OSError as exc:
            raise LakeError(
                f"cannot make a lock file in {folder} ({exc}): make room there or set TMPDIR"
            ) from exc
        return cls(path, token, file)

    def drop(self, *, told: bool = True) -> None:
        """Give it back. `told`: the lake says so; else the file stays, and this machine can tell by that."""
        if told:
            self.path.unlink(missing_ok=True)
        os.close(self._file)


def lock_is_free(who: Who) -> bool:
    """Whether `who` is surely dead, as far as this machine can tell (False = cannot tell, or lives).

    The file must still be there and hold the token: a missing one may mean another file system, not a dead
    process.
    """
    if not who.boot or who.boot != boot_id():
        return False
    try:
        file = os.open(who.lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.read(file, 64).decode(errors="replace") != who.token:
            return False
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that ask at once must both be told
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(file)


def heartbeat_path(token: str) -> str:
    """Where the driver of that token shows that it lives."""
    return f"{WORK}/drivers/{token}.json"


class Heartbeat:
    """A thread that rewrites the driver's heartbeat every L/3 until it is released."""

    def __init__(self, store: Store, who: Who, lease: timedelta) -> None:
        self._store, self._who, self._every = store, who, lease.total_seconds() / 3
        self._beat, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        #: what stopped it, if storage did
        self.failed: Exception | None = None

    def start(self) -> None:
        """First beat now, the others behind the scenes. Raises LakeError if the first cannot be written."""
        self._write("running")
        self._thread.start()

    def release(self) -> None:
        """Say that this driver is done, so that the next need not wait."""
        self._stop.set()
        if self._thread.ident is not None:  # else the first beat failed, and nobody believes that we live
            self._thread.join()
            self._write("released")

    def _write(self, state: str) -> None:
        self._beat += 1
        beat = {"beat": self._beat, "state": state, "boottime": boottime(), "who": self._who.plain()}
        self._store.write(heartbeat_path(self._who.token), json.dumps(beat).encode())

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self._write("running")
                self.failed = None
            except Exception as exc:  # noqa: BLE001 - a failed beat is tried again, whatever failed
                self.failed = exc


def read_beat(store: Store, token: str) -> Mapping[str, Any] | None:
    """The last heartbeat of that driver; None where there is none (it never lived, or was swept).

    One that cannot be read (the machine lost power, say) tells only whether it is still the same.
    """
    data = store.get(heartbeat_path(token))
    if data is None:
        return None
    try:
        beat: Mapping[str, Any] = json.loads(data)
        return {name: beat[name] for name in ("beat", "state", "boottime", "who")}
    except (ValueError, KeyError, TypeError):
        return {"beat": data, "state": "damaged", "boottime": 0.0, "who": {"boot": boot_id()}}


def _await_free(
    store: Store, who: Who, lease: timedelta, sleep: Callable[[float], None], tell: Callable[[str], None]
) -> None:
    """Return when the last holder is surely gone. Raises LakeBusy when it lives."""
    first = read_beat(store, who.token)
    if first is None or first["state"] == "released" or lock_is_free(who):
        return
    busy = f"the lake is in use by {who}; wait until it ends, or stop it"
    if first["boottime"] > boottime() - lease.total_seconds() and who.boot == boot_id():
        raise LakeBusy(busy)  # same machine, one clock: it lives
    tell(f"the last driver ({who}) did not say goodbye; watching its heartbeat for {2 * lease}")
    still_since, last = boottime(), first["beat"]
    while boottime() - still_since < 2 * lease.total_seconds():
        sleep(min(1.0, lease.total_seconds() / 10))
        beat = read_beat(store, who.token)
        if beat is None or beat["state"] == "released" or lock_is_free(who):
            return
        if beat["beat"] != last:
            raise LakeBusy(busy)


@contextmanager
def drive(
    store: Store,
    lease: timedelta,
    *,
    last_holder: Callable[[], Mapping[str, Any] | None],
    take: Callable[[Mapping[str, str]], Any],
    sleep: Callable[[float], None],
    tell: Callable[[str], None],
) -> Iterator[tuple[Any, Who]]:
    """Hold the lake: yields (fence, who). Raises LakeBusy naming the driver that holds it.

    `last_holder` gives the newest fence's metadata, `take` takes the next number and raises LakeBusy when
    another was faster (both from lake.fence).
    """
    holder = last_holder()
    if holder is not None:
        _await_free(store, Who.from_plain(holder), lease, sleep, tell)
    lock = Lock.take()
    who = Who.me(lock)
    heart = Heartbeat(store, who, lease)
    try:
        heart.start()
        yield take(who.plain()), who
    finally:
        told = False
        try:
            heart.release()
            told = True
        except LakeError as exc:  # what brought us here, if anything did, tells more
            tell(
                f"could not leave word that this driver is done ({exc}); the next one may have to wait for it"
            )
        finally:
            lock.drop(told=told)
