"""A lake as commands open it: its store and settings; made by `init`; and who may crawl with it.

What always holds: `identity.json` is written last, so that a lake is either whole or none, and `init`
finishes one that was interrupted; an existing lake or settings file is never touched. The lake's secret is
read anew where keys are made and is kept by no value here.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from crawl import url
from crawl.errors import UsageError
from crawl.keys import Keyer
from crawl.net.dns import Resolved, Resolver
from crawl.net.egress import Guard
from crawl.policy import Settings
from cycles.session import safety
from cycles.session.workspace import WORK, store_at
from cycles.settings import config
from lake import identity, tables
from lake.store import Store

__all__ = ["SETTINGS", "Lake", "init", "open_lake", "require_agent", "settings_text", "unasked", "who"]

#: where a lake's settings lie
SETTINGS = "crawl.toml"


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake that is there, and its settings in force."""

    store: Store
    settings: Settings

    @property
    def root(self) -> str:
        """Folder, or s3://bucket/prefix."""
        return self.store.root

    def keyer(self) -> Keyer:
        """Makes keys with the lake's secret, read for this one use."""
        return safety.keyer(self.store, self.settings.identity)


def open_lake(root: str, environ: Mapping[str, str] | None = None) -> Lake:
    """Raises NoSuchLake, NewerFormat, LakeError, SettingsError."""
    store = store_at(root)
    identity.load(store)
    text = settings_text(store)
    return Lake(store, config.load(text, os.environ if environ is None else environ, store.url(SETTINGS)))


def settings_text(store: Store) -> str:
    """What `crawl.toml` says; empty where there is none."""
    return (store.get(SETTINGS) or b"").decode(errors="replace")


def init(root: str) -> Store:
    """Make a lake: settings, tables, identity. Raises UsageError where there is one, or something else.

    The place must be empty, or hold `crawl.toml` alone; or what an interrupted `init` left. Raises LakeError.
    """
    store = store_at(root)
    if store.exists(identity.PATH):
        identity.load(store)  # says so if it is damaged, or newer than we are
        raise UsageError(f"there is a lake at {store.root} already: nothing was changed")
    _refuse_foreign(store)
    store.create(SETTINGS, config.DEFAULT_TOML.encode())
    config.load(settings_text(store), {}, store.url(SETTINGS))  # one that lay there already
    tables.create_all(store)
    identity.create(store, url.psl_hash(), url.RULES_VERSION)
    return store


def _refuse_foreign(store: Store) -> None:
    """Raises UsageError where a lake would mix with what lies there, or inside another lake."""
    outer = identity.around(store)
    if outer is not None:
        raise UsageError(f"{store.root} lies inside the lake at {outer}: choose a folder outside of it")
    names = store.names()
    foreign = sorted(names - {SETTINGS, WORK, *tables.SPECS})
    if foreign:
        told = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise UsageError(
            f"{store.root} holds something else ({told}): a lake is made in a new or empty folder,"
            f" like {store.root}/lake; nothing was changed"
        )
    for table in sorted(names & set(tables.SPECS)):
        if any(stat.path.endswith(".parquet") for stat in store.list(table)):
            raise UsageError(
                f"{store.root} holds tables with rows and no {identity.PATH}, without which their keys mean"
                " nothing: restore it from a copy, or choose an empty folder; nothing was changed"
            )


def who() -> str:
    """Who runs this command, as the table `audit` names people: user@machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a passwd entry
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def require_agent(settings: Settings, hosts: Iterable[str]) -> None:
    """Refuse to ask public hosts without a name and a contact. Raises UsageError.

    A host is not public where its address is known without asking a name server (an address itself, or
    listed in `[dns] hosts`) and lies in a range of `[egress] allow`. What an unlisted name leads to is not
    known yet.
    """
    if settings.agent.name and settings.agent.contact:
        return
    guard, listed = Guard(settings.egress), Resolver(settings.dns)
    for host in hosts:
        found = listed.known(host)
        if not isinstance(found, Resolved) or any(guard.public(address) for address in found.addresses):
            missing = " and ".join(
                f"{key} ({example})"
                for key, value, example in (
                    ("agent.name", settings.agent.name, "a product name, without spaces"),
                    ("agent.contact", settings.agent.contact, "https://… or mailto:…"),
                )
                if not value
            )
            raise UsageError(
                f"{host} may be a public host, and those are asked under a name with a contact only:"
                f" set {missing}, e.g. with `crawl config LAKE set agent.name NAME`"
            )


def unasked(settings: Settings, urls: Iterable[tuple[str, str]]) -> int:
    """How many URLs (host, URL) no request may go to: address or port are refused, so far as is known without
    asking a name server.
    """
    guard, listed = Guard(settings.egress), Resolver(settings.dns)
    of: dict[str, tuple[str, ...]] = {}  # addresses; none where one of them is the operator's own
    count = 0
    for host, address in urls:
        if host not in of:
            found = listed.known(host)
            known = found.addresses if isinstance(found, Resolved) else ()
            own = any(guard.permits(ip) and not guard.public(ip) for ip in known)
            of[host] = () if own else known
        if of[host]:
            parts = urlsplit(address)
            port = parts.port or (443 if parts.scheme == "https" else 80)
            count += not any(guard.permits_port(ip, port) for ip in of[host])
    return count
