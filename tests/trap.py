"""A real listener that nobody may connect to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Trap", "trap"]


@dataclass
class Trap:
    """Who fell into it: the address of each peer."""

    port: int
    connections: list[str] = field(default_factory=list)


@contextmanager
def trap(port: int = 0, address: str = "127.0.0.1") -> Iterator[Trap]:
    """Listens, accepts and hangs up."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        caught = Trap(listener.getsockname()[1])

        def accept() -> None:
            while True:
                try:
                    peer, where = listener.accept()
                except OSError:  # shut down
                    return
                caught.connections.append(where[0])
                peer.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield caught
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
