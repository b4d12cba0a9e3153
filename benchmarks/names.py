"""What c-ares does with slow names and with nonsense, and what a connection of one's own costs a question.

`python -m benchmarks.names`: against a name server on loopback; the figures of docs/decisions/021-names.md.
"""

from __future__ import annotations

import asyncio
import time

import aiodns

from crawl.net.dns import Resolved, Resolver
from crawl.policy import Dns
from tests.dnsserver import DnsServer, garbage, leads_to, serving, slow

SLOW_S = (0.1, 0.4, 0.8, 1.5, 3.0)


async def outcome(channel: aiodns.DNSResolver, name: str) -> str:
    began = time.perf_counter()
    try:
        await channel.query_dns(name, "A")
        said = "answered"
    except aiodns.error.DNSError as error:
        said = str(error.args[-1])
    return f"{said} after {time.perf_counter() - began:.2f} s"


async def slow_names(server: DnsServer) -> None:
    for seconds in SLOW_S:
        server.says[f"s{seconds}.slow.test"] = slow(seconds, leads_to("192.0.2.1", ttl=0))
    server.says["*.quick.test"] = leads_to("192.0.2.1")
    for tries in (2, 3, 5):
        channel = aiodns.DNSResolver(nameservers=[server.setting], timeout=2.0, tries=tries)
        for i in range(30):  # it learns how quick the server is
            await channel.query_dns(f"n{i}.quick.test", "A")
        for seconds in SLOW_S:
            said = await outcome(channel, f"s{seconds}.slow.test")
            print(f"  {tries} tries, a name that takes {seconds:.1f} s: {said}")
        await channel.close()
    async with Resolver(Dns(servers=(server.setting,))) as resolver:
        await asyncio.gather(*(resolver.resolve(f"m{i}.quick.test") for i in range(30)))
        for seconds in SLOW_S:
            began = time.perf_counter()
            await resolver.resolve(f"s{seconds}.slow.test")
            took = time.perf_counter() - began
            print(f"  crawl.net.dns, a name that takes {seconds:.1f} s: answered after {took:.2f} s")


async def nonsense(server: DnsServer) -> None:
    names = [f"n{i}.late.test" for i in range(100)]
    server.says["*.late.test"] = slow(0.2, leads_to("192.0.2.1", ttl=0))
    server.says["bad.test"] = garbage(b"\xff" * 40)
    channel = aiodns.DNSResolver(nameservers=[server.setting], timeout=2.0, tries=5)
    asked = [channel.query_dns(name, "A") for name in [*names, "bad.test"]]
    found = await asyncio.gather(*asked, return_exceptions=True)
    lost = sum(isinstance(one, BaseException) for one in found[:-1])
    print(f"  shared connection: {lost} of {len(names)} other names got no answer")
    await channel.close()
    async with Resolver(Dns(servers=(server.setting,))) as resolver:
        began = time.perf_counter()
        ours = await asyncio.gather(
            *(resolver.resolve(name) for name in [*names, "bad.test"]), return_exceptions=True
        )
        lost = sum(not isinstance(one, Resolved) for one in ours[:-1])
        print(f"  crawl.net.dns: {lost} of {len(names)} in {time.perf_counter() - began:.2f} s")


async def own_connections(server: DnsServer, count: int = 500) -> None:
    channel = aiodns.DNSResolver(nameservers=[server.setting], timeout=2.0, tries=5)
    began = time.process_time()
    for i in range(count):
        await channel.query_dns(f"a{i}.quick.test", "A")
    shared = time.process_time() - began
    await channel.close()
    began = time.process_time()
    for i in range(count):
        channel = aiodns.DNSResolver(nameservers=[server.setting], timeout=2.0, tries=5)
        await channel.query_dns(f"b{i}.quick.test", "A")
        await channel.close()
    own = time.process_time() - began
    each = [f"{seconds / count * 1e3:.2f} ms" for seconds in (shared, own)]
    print(f"  CPU a question, server included: {each[0]} shared, {each[1]} own")


async def main() -> None:
    with serving() as server:
        for what in (slow_names, nonsense, own_connections):
            print(what.__name__.replace("_", " "))
            await what(server)


if __name__ == "__main__":
    asyncio.run(main())
