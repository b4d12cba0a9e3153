"""A server of one event loop on loopback: opened, its connections known, and ended with all of them."""

import asyncio
import ssl
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(kw_only=True)
class Loopback(ABC):
    """Serves while it is entered. `tls` None: without."""

    address: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    port: int = 0
    connections: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @abstractmethod
    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        """Serves the connection of this number; that its client goes away is no error."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.address, 0, ssl=self.tls, backlog=1_024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.sleep(0)

    def url(self, path: str, host: str = "a.test") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            await self.talk(reader, writer, number)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        except asyncio.CancelledError:
            pass  # the test is over; asyncio's stream callback would report it as an error
        finally:
            self.tasks.discard(task)
            writer.close()
