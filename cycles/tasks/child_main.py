"""The parse process: pages come on stdin, answers go to stdout. Run as `python -m cycles.tasks.child_main`.

What always holds: it ends when stdin does (its parent is gone), and kills itself when a page takes far longer
than its parent would wait; it may use the memory it has after its imports plus the settings' share, no more;
the lake's secret is read by itself and appears in no argument, environment or message.

Messages in: (root, settings) once, then batches of pages. Messages out: ("ready",), or ("failed", whether it
is a setting's fault, why) where the lake cannot be read or a reader not be loaded; then for each batch
("done", pages finished, CPU seconds) after every page and a last ("result", documents, links, parsed,
rejects, failed), the tables as Arrow streams. Out of memory, it ends with the exit code `OUT_OF_MEMORY`.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from typing import Any, Final

import pyarrow as pa

from crawl.documents import readers
from crawl.errors import LakeError, SettingsError
from crawl.fetching import journal
from crawl.keys import Keyer
from crawl.policy import Settings
from crawl.stages import parse
from cycles.session import safety
from cycles.tasks import frames
from lake.store import connect

__all__ = ["OUT_OF_MEMORY", "main"]

OUT_OF_MEMORY: Final = 3


def main() -> None:
    """Serve until stdin ends."""
    source, out = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not end up between the messages
    warnings.simplefilter("ignore")  # remarks on a stranger's file are nobody's concern
    root, pickled = frames.receive(source)
    settings: Settings = pickle.loads(pickled)
    try:
        keyer = safety.keyer(connect(root), settings.identity)
        known = readers.load(settings.content)
    except (LakeError, SettingsError) as error:
        frames.send(out, ("failed", isinstance(error, SettingsError), str(error)))
        return
    _keep_inside()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # a page makes thousands of short-lived nodes, hardly ever a cycle
    _limit_memory(settings.parsing.memory_bytes)
    frames.send(out, ("ready",))
    try:
        while True:
            _serve(frames.receive(source), out, keyer, settings, known)
    except (frames.Gone, BrokenPipeError):
        return  # the parent is gone, and with it whoever would read an answer


def _serve(
    batch: Sequence[Any], out: int, keyer: Keyer, settings: Settings, known: Mapping[str, readers.Reader]
) -> None:
    """Parse one batch and answer."""
    finished = 0
    # Four times its deadline: the parent decides first, if there is one.
    patience = 4 * settings.parsing.deadline.total_seconds() + 1
    long_patience = 4 * settings.sitemaps.deadline.total_seconds() + 1

    def pages() -> Iterator[parse.RawPage]:
        nonlocal finished
        for fields in batch:
            page = _page(fields)
            most = patience if page.kind == "page" else long_patience
            signal.setitimer(signal.ITIMER_REAL, most)  # SIGALRM ends the process, in C code as well
            yield page
            finished += 1
            frames.send(out, ("done", finished, time.process_time()))
        signal.setitimer(signal.ITIMER_REAL, patience + len(batch))

    try:
        found = parse.extract(pages(), keyer=keyer, settings=settings, readers=known)
        tables = (_ipc(found.documents), _ipc(found.links), _ipc(found.parsed))
        frames.send(out, ("result", *tables, list(found.rejects), list(found.failed.items())))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # what a failed allocation left behind is nobody's guess
    signal.setitimer(signal.ITIMER_REAL, 0)


def _page(fields: Sequence[Any]) -> parse.RawPage:
    url_key, url, host, domain, depth, first_parse, content_type, headers, cut, media_type, *rest = fields
    data, zstd, kind, vouching, now = rest
    return parse.RawPage(
        url_key=url_key,
        url=url,
        host=host,
        domain=domain,
        depth=depth,
        first_parse=first_parse,
        content_type=content_type,
        headers=headers,
        body=journal.Body(data, zstd).raw(),
        truncated=cut,
        media_type=media_type,
        kind=kind,
        vouching=vouching,
        now=now,
    )


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


#: what no reader has any business with
_OUTSIDE: Final = frozenset(
    {
        *("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind", "socket.getaddrinfo"),
        *("socket.gethostbyname", "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty"),
        *("os.posix_spawn", "os.spawn", "os.kill", "os.killpg"),
    }
)


def _keep_inside() -> None:
    """From now on nothing here talks to anybody or starts anything: what a body names is not fetched for it.

    (An audit hook sees what Python does; a reader in another language is trusted with that.)
    """

    def hook(event: str, _: object) -> None:
        if event in _OUTSIDE:
            raise PermissionError(f"a reader has no network and starts no programs ({event})")

    sys.addaudithook(hook)


def _limit_memory(more: int) -> None:
    """Address space: what there is now, and `more` bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class _NoPandas(MetaPathFinder):
    """Arrow imports pandas at the first list it is given, only to ask whether that is one of pandas' own.

    Nothing here is: without it each parse process saves 0.15 s and 40 MB.
    """

    def find_spec(self, fullname: str, path: object, target: object = None, /) -> None:
        """Told of every import that is not done yet."""
        if fullname == "pandas":
            raise ModuleNotFoundError("a parse process does without pandas", name=fullname)


if __name__ == "__main__":
    sys.meta_path.insert(0, _NoPandas())
    main()
    sys.stderr.flush()
    os._exit(0)  # no thread of a library may hold up the end
