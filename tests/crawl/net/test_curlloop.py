"""The loop below libcurl, over real sockets: every handle is told of once, whatever happens to its socket."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import pycurl
import pytest

from crawl.net.curlloop import CurlLoop
from tests.crawl.rawserver import RawServer, closing, response


class Told:
    """A loop whose ends are written down, and handles for it."""

    def __init__(self, on_end: Callable[[Any], None] = lambda curl: None) -> None:
        self.ends: list[tuple[Any, int, str]] = []
        self.batches: list[int] = []
        self.bodies: dict[Any, list[bytes]] = {}
        self._on_end = on_end
        self.loop = CurlLoop(self._ended, lambda: self.batches.append(len(self.ends)), 100)

    def _ended(self, curl: Any, code: int, message: str) -> None:
        self.ends.append((curl, code, message))
        self._on_end(curl)

    def handle(self, url: str) -> Any:
        curl = pycurl.Curl()
        self.bodies[curl] = []
        for option, value in {
            pycurl.URL: url,
            pycurl.CONNECT_TO: ["::127.0.0.1:"],
            pycurl.NOSIGNAL: 1,
            pycurl.PROXY: "",
            pycurl.WRITEFUNCTION: self.bodies[curl].append,
            pycurl.OPENSOCKETFUNCTION: self._open,
            pycurl.CONNECTTIMEOUT_MS: 5_000,
        }.items():
            curl.setopt(option, value)
        return curl

    def _open(self, purpose: int, address: Any) -> int:
        fd = socket.socket(address.family, address.socktype, address.protocol).detach()
        self.loop.opened(fd)
        return fd

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.ends) < count:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)  # were there one too many, it would come now
        assert len(self.ends) == count


def test_every_handle_is_told_of_once_however_many_there_are() -> None:
    async def main() -> None:
        async with RawServer({"/": response(200, b"hello")}) as server:
            told = Told()
            handles = [told.handle(server.url("/")) for _ in range(300)]
            for curl in handles:
                told.loop.start(curl)
            await told.until(300)
            assert {curl for curl, _, _ in told.ends} == set(handles)
            assert {(code, message) for _, code, message in told.ends} == {(0, "")}
            assert {b"".join(chunks) for chunks in told.bodies.values()} == {b"hello"}
            assert told.batches[-1] == 300
            assert len(told.batches) <= 300
            told.loop.close()

    asyncio.run(main())


def test_a_connection_is_used_again_and_a_closed_one_replaced() -> None:
    async def main() -> None:
        pages = {"/stay": response(200, b"1"), "/go": closing(response(200, b"2"))}
        async with RawServer(pages) as server:
            told = Told()
            curl = told.handle(server.url("/stay"))
            fresh = []
            for number, path in enumerate(["/stay", "/stay", "/go", "/stay", "/stay"], 1):
                curl.setopt(pycurl.URL, server.url(path))
                told.loop.start(curl)
                await told.until(number)
                fresh.append(curl.getinfo(pycurl.NUM_CONNECTS))
            assert fresh == [1, 0, 0, 1, 0]
            assert [code for _, code, _ in told.ends] == [0] * 5
            told.loop.close()

    asyncio.run(main())


def test_whoever_is_told_may_start_the_next_one_at_once() -> None:
    async def main() -> None:
        async with RawServer({"/": response(200, b"x")}) as server:
            left = 20

            def again(curl: Any) -> None:
                nonlocal left
                left -= 1
                if left:
                    told.loop.start(curl)

            told = Told(again)
            told.loop.start(told.handle(server.url("/")))
            await told.until(20)
            told.loop.close()

    asyncio.run(main())


def test_a_refused_connection_and_an_unusable_url_are_told_by_their_codes() -> None:
    async def main() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            told = Told()
            told.loop.start(told.handle(f"http://a.test:{unused.getsockname()[1]}/"))
            told.loop.start(told.handle("gopher-not-known://a.test/"))
            await told.until(2)
            codes = {code for _, code, _ in told.ends}
            assert codes == {pycurl.E_COULDNT_CONNECT, pycurl.E_UNSUPPORTED_PROTOCOL}
            told.loop.close()

    asyncio.run(main())


def test_a_dropped_transfer_is_told_of_later_and_once() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            told = Told()
            curl = told.handle(f"http://a.test:{silent.getsockname()[1]}/")
            assert not told.loop.drop(curl)
            told.loop.start(curl)
            await asyncio.sleep(0.05)
            assert told.loop.drop(curl)
            assert not told.loop.drop(curl)
            assert told.ends == []
            await told.until(1)
            assert told.ends == [(curl, 0, "")]
            told.loop.start(curl)  # and can be started again
            told.loop.drop(curl)
            await told.until(2)
            told.loop.close()

    asyncio.run(main())


def test_libcurls_own_time_limits_are_heeded() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            told = Told()
            for ms in (400, 60, 200):
                curl = told.handle(f"http://a.test:{silent.getsockname()[1]}/")
                curl.setopt(pycurl.TIMEOUT_MS, ms)
                told.loop.start(curl)
            await told.until(3)
            assert {code for _, code, _ in told.ends} == {pycurl.E_OPERATION_TIMEDOUT}
            told.loop.close()

    asyncio.run(main())


def test_an_error_of_who_is_told_hides_no_other_end(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with RawServer({"/": response(200, b"x")}) as server:
            broken: list[Any] = []

            def fail(curl: Any) -> None:
                if curl in broken:
                    raise ValueError("not my day")

            told = Told(fail)
            broken.append(told.handle(server.url("/")))
            for curl in (broken[0], told.handle(server.url("/"))):
                told.loop.start(curl)
            await told.until(2)
            told.loop.close()

    asyncio.run(main())
    assert "not my day" in caplog.text


def test_an_idle_connection_that_its_peer_closes_makes_no_work() -> None:
    async def main() -> None:
        async with RawServer({"/": response(200, b"x")}) as server:
            told = Told()
            told.loop.start(told.handle(server.url("/")))
            await told.until(1)
            for task in list(server.tasks):
                task.cancel()  # the server closes its end
            await asyncio.sleep(0.05)
            wakeups = 0
            real = told.loop._ready

            def counted() -> None:
                nonlocal wakeups
                wakeups += 1
                real()

            loop = asyncio.get_running_loop()
            loop.add_reader(told.loop._epoll.fileno(), counted)
            await asyncio.sleep(0.1)
            assert wakeups == 0
            told.loop.start(told.handle(server.url("/")))
            await told.until(2)
            assert told.ends[1][1] == 0
            told.loop.close()

    asyncio.run(main())


def test_ends_that_take_long_let_the_loop_run_between_them_and_closing_tells_the_rest() -> None:
    async def main() -> None:
        async with RawServer({"/": response(200, b"hello")}) as server:
            told = Told(lambda curl: time.sleep(0.03))
            handles = [told.handle(server.url("/", f"h{n}.test")) for n in range(6)]
            for curl in handles:
                told.loop.start(curl)
            await told.until(6)
            assert told.batches == [1, 2, 3, 4, 5, 6]
            for curl in handles:
                told.loop.start(curl)
            for curl in handles:
                told.loop.drop(curl)
            told.loop.close()
            assert len(told.ends) == 12

    asyncio.run(main())
