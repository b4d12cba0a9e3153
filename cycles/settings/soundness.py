"""Do settings make sense? What the type of a value cannot show, and several of them together.

What always holds: what is refused is named with its place and key, and the message says what to write
instead. `check` reads no file and no environment; types and names of keys are `cycles.settings.config`'s.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from crawl.errors import SettingsError
from crawl.net import trust
from crawl.policy import Settings

__all__ = ["VIAS", "check", "check_files", "plugged"]

#: kinds of links there are on pages (column `via` of links; what names sitemaps has its own settings)
VIAS: Final = ("a", "area", "link", "frame", "iframe", "refresh", "header", "redirect")
#: settings that would stop or break a crawl below this
_LEAST: Final[Mapping[str, int | timedelta]] = {
    "round.merge_every": 1,
    "round.window": timedelta(milliseconds=1),
    "politeness.circuit_after": 1,
    "politeness.address_in_flight": 1,
    "politeness.address_domains": 1,
    "politeness.address_shares": 1,
    "dns.timeout": timedelta(milliseconds=1),
    "dns.in_flight": 1,
    "dns.prefetch": 1,
    "limits.request_deadline": timedelta(milliseconds=1),
    "limits.connect_timeout": timedelta(milliseconds=1),
    "limits.idle": timedelta(milliseconds=1),
    "limits.keep_alive": timedelta(seconds=1),
    "limits.header_bytes": 1,
    "limits.header_lines": 1,
    "limits.wire_bytes": 1,
    "limits.decoded_bytes": 1,
    "limits.url_chars": 1,
    "limits.segments": 1,
    "limits.repeated_segment": 1,
    "parsing.parsed_bytes": 1,
    "parsing.deadline": timedelta(milliseconds=1),
    "parsing.memory_bytes": 1,
    "robots.bytes": 500 * 1024,  # RFC 9309 2.5
    "robots.valid": timedelta(minutes=10),  # crawl.robots: no copy is asked for anew sooner
    "robots.redirects": 5,  # RFC 9309 2.3.1.2
    "fetching.in_flight": 1,
    "fetching.in_flight_bytes": 1,
    "fetching.flush_bytes": 1,
    "fetching.part_bytes": 1,
    "fetching.lease": timedelta(seconds=1),
    "retry.attempts": 1,
    "recrawl.floor": timedelta(seconds=1),
    "recrawl.gone_404": 1,
    "recrawl.gone_410": 1,
    "sitemaps.bytes": 1,
    "sitemaps.urls": 1,
    "sitemaps.hosts": 1,
    "sitemaps.deadline": timedelta(milliseconds=1),
    "planning.urls": 1,
    "planning.host_budget": 1,
    "retention.keep_versions": 1,
    "storage.merge_rows": 1,
    "storage.tier_ratio": 2,
    "storage.row_group": 1,
    "storage.target_bytes": 1,
}
#: the most that manners allow: a robots.txt is not obeyed in an older copy
_MOST: Final[Mapping[str, timedelta]] = {
    "robots.valid": timedelta(hours=24),  # RFC 9309 2.4
    "robots.last_good": timedelta(days=30),
}
#: requests that one host may have open: more are a load test
_LANES: Final = 64
#: types whose reader cannot be missing
_OURS: Final = frozenset({"text/html", "application/xhtml+xml"})
#: shares: 0 to 1
_SHARES: Final = ("retry.jitter", "recrawl.jitter", "recrawl.retire_share")


def check(settings: Settings, place: str) -> None:
    """Raises SettingsError."""
    for key, why in itertools.chain(
        _ranges(settings),
        _agent(settings),
        _scope(settings),
        _groups(settings),
        _in_flight(settings),
        _networks(settings),
        _content(settings),
        _schedules(settings),
    ):
        raise SettingsError(f"{place}: {key}{why}")


def check_files(settings: Settings, place: str) -> None:
    """The files and functions that settings name, where they are about to be used. Raises SettingsError."""
    if plugged(settings):
        from crawl.documents import readers

        try:
            readers.load(settings.content)
        except SettingsError as error:
            raise SettingsError(f"{place}: {error}") from error
    if settings.tls.ca_file and (wrong := trust.fault(settings.tls.ca_file)):
        raise SettingsError(f"{place}: tls.ca_file{wrong}")


def plugged(settings: Settings) -> bool:
    """Whether anything but pages is read, so that a reader may be missing."""
    return bool(settings.content.readers) or not _OURS.issuperset(settings.content.types)


def _value(settings: Settings, key: str) -> Any:
    section, name = key.split(".")
    return getattr(getattr(settings, section), name)


#: (key, what is wrong with it)
Faults = Iterable[tuple[str, str]]


def _ranges(settings: Settings) -> Faults:
    for key, least in _LEAST.items():
        value = _value(settings, key)
        if value < least:
            if isinstance(least, timedelta):
                seconds = least.total_seconds()
                yield (
                    key,
                    " must be longer than nothing"
                    if seconds < 1
                    else f" must be at least {f'{seconds / 60:g}m' if seconds >= 60 else f'{seconds:g}s'}",
                )
            else:
                yield key, f" = {value} must be at least {least}"
    for key, most in _MOST.items():
        if _value(settings, key) > most:
            yield key, f" must be at most {most // timedelta(hours=1)}h"
    for key in _SHARES:
        if not 0 <= _value(settings, key) <= 1:
            yield key, f" = {_value(settings, key)} is a share: write a number from 0 to 1"


def _agent(settings: Settings) -> Faults:
    contact, name = settings.agent.contact, settings.agent.name
    if contact and not re.fullmatch(r"https://[^\s/]\S*|mailto:[^\s@]+@\S+", contact):
        yield (
            "agent.contact",
            (f" = {contact!r} must be a page at https://… or an address, like mailto:you@example.org"),
        )
    if name and not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        # a product token (RFC 9110 10.1.5) without spaces or slashes, else no robots group could name us
        yield "agent.name", f" = {name!r} may hold letters, digits, '.', '-' and '_' only"


def _scope(settings: Settings) -> Faults:
    """A name that is none would match nothing, and a public suffix everything below it."""
    for key, names in (("scope.hosts", settings.scope.hosts), ("scope.domains", settings.scope.domains)):
        for name in names:
            yield from ((key, fault) for fault in _misnamed(key, name))


def _groups(settings: Settings) -> Faults:
    """A host obeys one clock, its own or that of one group."""
    from crawl import url
    from crawl.politeness.joined import Groups

    key, groups = "politeness.groups", settings.politeness.groups
    for group, patterns in groups.items():
        others = Groups({name: listed for name, listed in groups.items() if name != group})
        if not patterns:
            yield key, f": {group} has no hosts: name some, or leave the group out"
        for pattern in patterns:
            name = pattern.removeprefix("*.")
            found = url.bare_host(name)
            if found is None or (name != pattern and not re.search("[a-z]", found)):
                yield (
                    key,
                    f": {pattern!r} in {group} is neither a host, like www.example.org, nor all hosts below a"
                    " name, like *.example.org",
                )
            elif found != name:
                yield key, f": {pattern!r} in {group} is written {pattern.replace(name, found)!r} in URLs"
            elif (other := others.of(name)) is not None:
                yield (
                    key,
                    f": {pattern} is in {group} and in {other}, but a host has one clock: leave one out",
                )


def _in_flight(settings: Settings) -> Faults:
    """Several requests at once are for hosts that somebody named, each on its own clock."""
    from crawl import url
    from crawl.politeness.joined import Groups

    key, groups = "politeness.in_flight", Groups(settings.politeness.groups)
    for name, most in settings.politeness.in_flight.items():
        found = url.bare_host(name)
        if found is None:
            yield key, f": {name!r} is no host: write names, like www.example.org, without wildcard and port"
        elif found != name:
            yield key, f": {name!r} is written {found!r} in URLs: write that"
        elif not 1 <= most <= _LANES:
            yield key, f": {name} = {most} must be from 1 to {_LANES}: so many requests are open at once"
        elif most > 1 and (group := groups.of(name)) is not None:
            yield (
                key,
                f": {name} is in the group {group}, whose hosts have one clock for all their requests: leave"
                " it out here or in politeness.groups",
            )


def _misnamed(key: str, name: str) -> Iterable[str]:
    from crawl import url

    what = "a host" if key == "scope.hosts" else "a domain"
    found = url.bare_host(name)
    if found is None:
        guess = _guess(name)
        hint = f": write {guess}" if guess else ": write a name, like www.example.org, or [] for none"
        yield f": {name!r} is no name of {what}, without scheme, port, path, comma or wildcard{hint}"
    elif found != name:
        yield f": {name!r} is written {found!r} in URLs: write that"
    elif key == "scope.domains" and url.is_public_suffix(name):
        yield (
            f": {name!r} is a public suffix, below which anybody may have a domain: name the domains,"
            f" like example.{name}"
        )


def _guess(name: str) -> str:
    """What was meant by a name with something around it."""
    from crawl import url

    parts = [
        url.bare_host(re.sub(r":\d*$", "", re.sub(r"^([a-z]+:)?//|^\*\.|^\.|/.*$", "", part.strip().lower())))
        for part in re.split(r"[,;\s]+", name)
        if part
    ]
    return ", ".join(f'"{part}"' for part in parts) if parts and all(parts) else ""


def _networks(settings: Settings) -> Faults:
    from crawl.net.egress import too_wide

    for key, texts in (("egress.allow", settings.egress.allow), ("dns.hosts", settings.dns.hosts.values())):
        none = ", or [] for none" if key == "egress.allow" else ""
        for text in texts:
            try:
                wide = too_wide(text)
            except ValueError:
                yield key, f": {text!r} is no address or range: write one, like 10.0.0.7 or 10.0.0.0/8{none}"
                continue
            if wide and key == "egress.allow":
                yield (
                    key,
                    f": {text!r} is too much of the public internet, which is allowed without being listed:"
                    " write ranges of your own, like 10.0.0.0/8 (public ones up to /8, of IPv6 up to /16)",
                )
    if settings.dns.prefetch > settings.dns.in_flight:
        yield "dns.prefetch", f" is more than dns.in_flight = {settings.dns.in_flight}, of which it is a part"
    for server in settings.dns.servers:
        if (fault := _no_server(server)) is not None:
            yield "dns.servers", f": {server!r} is no name server: {fault}"
    for port in settings.egress.ports:
        if not 0 < port < 65_536:
            yield "egress.ports", f": {port} is no port: write a number from 1 to 65535"
    if settings.tls.ca_file and not settings.tls.ca_file.startswith("/"):
        yield (
            "tls.ca_file",
            f" = {settings.tls.ca_file!r} must be an absolute path: it is read wherever requests are made",
        )


def _no_server(text: str) -> str | None:
    """What is wrong with the address of a name server, like 192.0.2.53:5353."""
    from ipaddress import ip_address

    bare = re.fullmatch(r"\[(?P<six>[^\]]+)\](:(?P<port>\d+))?|(?P<four>[^:]+)(:(?P<port4>\d+))?", text)
    address = (bare and (bare["six"] or bare["four"])) or text
    try:
        ip_address(address)
    except ValueError:
        return (
            "write an address, like 127.0.0.1:5353 or [::1]:5353 (a name would have to be resolved first),"
            " or [] for the system's"
        )
    port = bare and (bare["port"] or bare["port4"])
    if port and not 0 < int(port) < 65_536:
        return f"{port} is no port: write a number from 1 to 65535"
    return None


def _content(settings: Settings) -> Faults:
    """Media types as they are compared, and functions as they are found; whether they are there is
    `check_files`' matter.
    """
    content = settings.content
    if not content.types:
        yield "content.types", ": nothing would be read; name at least text/html"
    for key, kinds in (("content.types", content.types), ("content.readers", tuple(content.readers))):
        for kind in kinds:
            if not re.fullmatch(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+", kind):
                yield (
                    key,
                    f": {kind!r} is no media type: write one in lower case, without parameters and"
                    " wildcards, like application/pdf",
                )
    for kind, at in content.readers.items():
        if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", at):
            yield "content.readers", f": the reader of {kind} is {at!r}: write module:function"


def _schedules(settings: Settings) -> Faults:
    recrawl, planning = settings.recrawl, settings.planning
    if recrawl.floor > recrawl.ceiling:
        yield "recrawl.floor", " is longer than recrawl.ceiling: the shortest interval comes first"
    if any(weight < 0 for weight in planning.weights) or not any(planning.weights):
        yield "planning.weights", f" = {list(planning.weights)} must not be negative, nor all of them 0"
    high, middle, low = planning.cuts
    if not 1 >= high >= middle >= low >= 0:
        yield (
            "planning.cuts",
            f" = {list(planning.cuts)} must descend, from 1 at most to 0 at least: critical, high, medium",
        )
    for via in settings.parsing.via:
        if via not in VIAS:
            yield "parsing.via", f": there are no links by {via!r}: write some of {', '.join(VIAS)}"
