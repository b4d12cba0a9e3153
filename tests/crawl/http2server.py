"""An HTTP/2 server on loopback that says exactly what a test wants, beside what HTTP/1 servers can."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, RequestReceived, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError

from tests.crawl.loopback import Loopback


@dataclass(slots=True)
class Stream:
    """One request, and what can be answered to it."""

    headers: dict[str, str]
    number: int
    connection: int
    talk: H2Connection
    writer: asyncio.StreamWriter
    open_window: asyncio.Event

    @property
    def path(self) -> str:
        return self.headers[":path"]

    async def flush(self) -> None:
        self.writer.write(self.talk.data_to_send())
        await self.writer.drain()
        await asyncio.sleep(0)  # whoever writes without end lets others run all the same

    async def head(self, status: int = 200, *lines: tuple[str, str], end: bool = False) -> None:
        self.talk.send_headers(self.number, [(":status", str(status)), *lines], end_stream=end)
        await self.flush()

    async def body(self, data: bytes, *, end: bool = True) -> None:
        while data:
            room = min(
                self.talk.local_flow_control_window(self.number), self.talk.max_outbound_frame_size, len(data)
            )
            if room <= 0:
                self.open_window.clear()
                await self.open_window.wait()
                continue
            piece, data = data[:room], data[room:]
            self.talk.send_data(self.number, piece)
            await self.flush()
        if end:
            self.talk.end_stream(self.number)
            await self.flush()

    async def reset(self, code: int) -> None:
        self.talk.reset_stream(self.number, code)
        await self.flush()

    async def go_away(self, code: int = 0, last: int = 0) -> None:
        self.talk.close_connection(code, last_stream_id=last)
        await self.flush()


Say = Callable[[Stream], Awaitable[None]]


def page(data: bytes, status: int = 200, *lines: tuple[str, str]) -> Say:
    async def say(stream: Stream) -> None:
        await stream.head(status, ("content-length", str(len(data))), *lines)
        await stream.body(data)

    return say


@dataclass
class Http2Server(Loopback):
    """Answers by path, home pages by host as well; every stream in a task of its own."""

    says: dict[str, Say] = field(default_factory=dict)
    by_host: dict[str, Say] = field(default_factory=dict)
    seen: list[Stream] = field(default_factory=list)
    open: int = 0
    most_at_once: int = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        talk = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        talk.config.validate_outbound_headers = False
        talk.initiate_connection()
        writer.write(talk.data_to_send())
        opened = asyncio.Event()
        try:
            while data := await reader.read(65_536):
                for event in talk.receive_data(data):
                    if isinstance(event, RequestReceived):
                        headers = {str(k): str(v) for k, v in event.headers or ()}
                        stream = Stream(headers, event.stream_id, number, talk, writer, opened)
                        self._start(stream)
                    elif isinstance(event, (WindowUpdated, ConnectionTerminated, StreamReset)):
                        opened.set()
                writer.write(talk.data_to_send())
        except ProtocolError:
            pass

    def _start(self, stream: Stream) -> None:
        self.seen.append(stream)
        task = asyncio.create_task(self._answer(stream))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, stream: Stream) -> None:
        self.open += 1
        self.most_at_once = max(self.most_at_once, self.open)
        try:
            say = self.says.get(stream.path, page(b"nothing here", 404))
            host = stream.headers.get(":authority", "").partition(":")[0]
            await (self.by_host.get(host, say) if stream.path == "/" else say)(stream)
        except (ProtocolError, ConnectionError, ssl.SSLError):
            pass  # the client has gone away
        finally:
            self.open -= 1
