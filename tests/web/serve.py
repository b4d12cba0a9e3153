"""Serve a grown web: `python -m tests.web.serve --seed 1 --hosts 60 --pages 2500 [--port 0] [--log FILE]`.

It prints one JSON line (ports, the time, the crawler's settings, the hosts' addresses) and serves until its
input ends with `--until-eof`, or until it is interrupted. `running` does the same for a test, in a process of
its own.

The control port, on 127.0.0.1, speaks JSON over HTTP:

- `POST /time {"now": "2026-01-05T00:00:00Z"}` sets the web's clock; `GET /time` tells it.
- `POST /down {"hosts": ["www.a1.test"]}` makes exactly these hosts drop every connection on its first
  request.
- `POST /warm` makes all answers ready beforehand, for measurements (about 0.7 ms a page).
- `GET /log?since=N` gives the access log from line N on (and flushes it to its file); `GET /info` the first
  line again.

A log line has `start` (when the whole request had been received) and `end` (when its answer had been handed
to the system) as `time.time()`, host, path, status (0: dropped), method, agent, connection, if_none_match and
if_modified_since.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import resource as limits
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.web.grow import Web
from tests.web.model import Features, seconds, when
from tests.web.server import Connection, Log, NoNames, Site, listen

__all__ = ["Running", "main", "running", "settings", "toml"]

_ROOT = Path(__file__).resolve().parents[2]


def settings(web: Web, dns_port: int | None = None) -> dict[str, dict[str, Any]]:
    """The sections of `crawl.toml` that a crawl of this web needs: agent, egress, dns.

    With `dns_port`, every name that is not the web's is asked of this server, where none has an address.
    """
    dns: dict[str, Any] = {"hosts": {"*.test": web.network}}
    if dns_port is not None:
        dns["servers"] = [f"127.0.0.1:{dns_port}"]
    return {
        "agent": {"name": web.agent, "contact": "mailto:rehearsal@example.org"},
        "egress": {"allow": [web.network]},
        "dns": dns,
    }


def toml(sections: dict[str, dict[str, Any]]) -> str:
    """Sections as TOML text (JSON's texts, numbers, lists and truth values are TOML's; tables are inline)."""
    lines: list[str] = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        for key, value in values.items():
            if isinstance(value, dict):
                inner = ", ".join(f"{json.dumps(name)} = {json.dumps(each)}" for name, each in value.items())
                lines.append(f"{key} = {{ {inner} }}")
            else:
                lines.append(f"{key} = {json.dumps(value)}")
        lines.append("")
    return "\n".join(lines)


# --- the server process -------------------------------------------------------------------------------------


async def _control(
    site: Site, info: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one control request and close."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    method, target, _ = head.split("\r\n")[0].split(" ")
    length = next(
        (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
    )
    sent = json.loads(await reader.readexactly(length)) if length else {}
    path, _, query = target.partition("?")
    status, body = 200, ""
    try:
        match method, path:
            case "POST", "/time":
                site.set_time(seconds(sent["now"]))
                body = json.dumps({"now": when(site.now).isoformat()})
            case "GET", "/time":
                body = json.dumps({"now": when(site.now).isoformat()})
            case "POST", "/down":
                site.down = frozenset(sent["hosts"])
                body = json.dumps({"down": sorted(site.down)})
            case "POST", "/warm":
                body = json.dumps({"ready": site.warm()})
            case "GET", "/log":
                site.log.flush()
                body = "".join(
                    line + "\n" for line in site.log.lines[int(query.removeprefix("since=") or 0) :]
                )
            case "GET", "/info":
                body = json.dumps({**info, "now": when(site.now).isoformat()})
            case _:
                status, body = 404, json.dumps({"error": f"no such request: {method} {path}"})
    except (KeyError, TypeError, ValueError) as error:
        status, body = 400, json.dumps({"error": repr(error)})
    data = body.encode()
    writer.write(
        f"HTTP/1.1 {status} -\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data
    )
    await writer.drain()
    writer.close()


async def _serve(spec: dict[str, Any], control_port: int, log_path: Path | None, until_eof: bool) -> None:
    soft, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    limits.setrlimit(limits.RLIMIT_NOFILE, (hard if hard != limits.RLIM_INFINITY else max(soft, 65536), hard))
    unbound = Web.from_spec(spec)
    addresses = sorted({unbound.address(host.name) for host in unbound.hosts})
    sockets = listen(addresses, unbound.port)
    port = sockets[0].getsockname()[1]
    web = Web.from_spec(spec, port) if port != unbound.port else unbound
    log = Log(log_path)
    site = Site(web, log)
    loop = asyncio.get_running_loop()
    for each in sockets:
        await loop.create_server(lambda: Connection(site), sock=each)
    names, _ = await loop.create_datagram_endpoint(NoNames, local_addr=("127.0.0.1", 0))
    info: dict[str, Any] = {
        "port": port,
        "seeds": web.seed_urls,
        "settings": settings(web, names.get_extra_info("sockname")[1]),
        "spec": web.spec(),
    }
    info["hosts"] = {host.name: web.address(host.name) for host in web.hosts}
    control = await asyncio.start_server(lambda r, w: _control(site, info, r, w), "127.0.0.1", control_port)
    info["control_port"] = control.sockets[0].getsockname()[1]
    info["now"] = when(site.now).isoformat()
    print(json.dumps(info), flush=True)
    try:
        if until_eof:
            await loop.run_in_executor(None, sys.stdin.buffer.read)
        else:
            await asyncio.Event().wait()
    finally:
        log.flush()


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.web.serve", description="Serve a grown web.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=60)
    parser.add_argument("--pages", type=int, default=2500)
    parser.add_argument("--port", type=int, default=0, help="of the web, on every host's address (0: any)")
    parser.add_argument("--control-port", type=int, default=0)
    parser.add_argument("--agent", default="rehearsal", help="the crawler's name in robots.txt")
    parser.add_argument("--network", default="127.1.0.0/16", help="addresses that the hosts are spread over")
    parser.add_argument("--mean-bytes", type=int, default=15_000, help="of a page")
    parser.add_argument(
        "--without", action="append", default=[], metavar="FEATURE", help=", ".join(Features.names())
    )
    parser.add_argument("--only", action="append", metavar="FEATURE")
    parser.add_argument("--log", type=Path, help="append the access log to this file")
    parser.add_argument("--until-eof", action="store_true", help="end when the input ends")
    parser.add_argument("--spec", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    try:
        features = (Features() if given.only is None else Features.only(*given.only)).without(*given.without)
        spec = json.loads(given.spec) if given.spec else Web(
            given.seed, given.hosts, given.pages, features=features, port=given.port, agent=given.agent,
            network=given.network, mean_bytes=given.mean_bytes,
        ).spec()  # fmt: skip
    except ValueError as error:
        parser.error(str(error))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(spec, given.control_port, given.log, given.until_eof))


# --- from a test --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A web that is being served by another process. `web` knows the port, so its URLs are those served."""

    web: Web
    port: int
    control_port: int
    settings: dict[str, dict[str, Any]]
    pid: int

    def control(
        self,
        *,
        now: datetime | str | int | None = None,
        down: list[str] | None = None,
        warm: bool = False,
    ) -> None:
        """Set the clock or who is down, make all answers ready. Raises ValueError if refused."""
        if now is not None:
            self._ask("POST", "/time", {"now": seconds(now)})
        if down is not None:
            self._ask("POST", "/down", {"hosts": down})
        if warm:
            self._ask("POST", "/warm")

    def log(self, since: int = 0) -> list[dict[str, Any]]:
        """The access log from line `since` on."""
        return [json.loads(line) for line in self._ask("GET", f"/log?since={since}").splitlines()]

    def _ask(self, method: str, path: str, sent: dict[str, Any] | None = None) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.control_port, timeout=30)
        try:
            connection.request(method, path, json.dumps(sent) if sent is not None else None)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            raise ValueError(f"the web's control port refused {method} {path}: {text}")
        return text


@contextlib.contextmanager
def running(web: Web, *, log: Path | None = None) -> Iterator[Running]:
    """Serve `web` in a process of its own while the block runs (at `web.port`, or any free one if that is 0).

    The process ends with the block, and with this process. Raises RuntimeError if it does not start.
    """
    command = [sys.executable, "-m", "tests.web.serve", "--until-eof", "--spec", json.dumps(web.spec())]
    command += ["--log", str(log)] if log else []
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"the web could not be served: its server ended with {process.wait()}, see above"
            )
        info = json.loads(line)
        served = web if web.port == info["port"] else Web.from_spec(web.spec(), info["port"])
        yield Running(
            web=served, port=info["port"], control_port=info["control_port"], settings=info["settings"],
            pid=process.pid,
        )  # fmt: skip
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


if __name__ == "__main__":
    main()
