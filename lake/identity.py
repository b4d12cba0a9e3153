"""What a lake is, once and for all: format, secret, and the rules its keys were made by (`identity.json`).

What always holds: it is written once, by one creator; the secret goes to the process that reads it and
nowhere else: an Identity does not pickle and does not show it.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NoReturn

from crawl.errors import LakeError, NewerFormat, NoSuchLake
from lake.store import Store, connect

__all__ = ["FORMAT", "PATH", "Identity", "around", "create", "load"]

#: raised when an older version of this software could no longer read or write the lake rightly
FORMAT: Final = 1
PATH: Final = "identity.json"
_SECRET_BYTES: Final = 32  # of a key for keyed BLAKE2b, which takes up to 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Content of `identity.json`."""

    format: int
    secret: bytes = field(repr=False)  # keys urls, hosts and documents: nobody outside can aim at a key
    psl_hash: str  # Public Suffix List snapshot that made the domains
    rules_version: int  # rules that made the keys

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lake's identity holds its secret and does not travel: load it where it is needed")


def create(store: Store, psl_hash: str, rules_version: int, secret: bytes | None = None) -> Identity:
    """Make this place a lake, or find that it is one: returns the identity that stands. Raises LakeError.

    `secret`: for a lake whose keys must be known beforehand (tests); otherwise drawn.
    """
    made = secret if secret is not None else secrets.token_bytes(_SECRET_BYTES)
    content = {
        "format": FORMAT,
        "psl_hash": psl_hash,
        "rules_version": rules_version,
        "secret": made.hex(),
        "proof": _proof(made),
    }
    store.create(PATH, json.dumps(content, indent=1).encode())
    return load(store)


def load(store: Store) -> Identity:
    """The identity of this lake. Raises NoSuchLake, NewerFormat, LakeError for a damaged one."""
    data = store.get(PATH)
    if data is None:
        raise NoSuchLake(f"there is no lake at {store.root}{_remedy(store)}")
    try:
        content = json.loads(data)
        if int(content["format"]) > FORMAT:
            raise NewerFormat(
                f"{store.root} has format {content['format']}, this software reads up to {FORMAT}:"
                " use a newer version of it"
            )
        secret = bytes.fromhex(content["secret"])
        if content.get("proof", _proof(secret)) != _proof(secret) or not secret:
            raise ValueError  # another secret makes other keys: every URL would be met anew
        return Identity(
            format=int(content["format"]),
            secret=secret,
            psl_hash=str(content["psl_hash"]),
            rules_version=int(content["rules_version"]),
        )
    except (ValueError, KeyError, TypeError):
        # the cause is not passed on: it would show what was read
        raise LakeError(
            f"{store.url(PATH)} is damaged: restore it from a copy, keys cannot be told without"
        ) from None


def _proof(secret: bytes) -> str:
    """What tells this secret from one that was damaged or put in its place, and does not tell it."""
    return blake2b(b"the secret of this lake", key=secret[:64], digest_size=8).hexdigest()


def around(store: Store) -> str | None:
    """The root of a lake that this place lies inside of, such as that of a table's folder; None for none."""
    scheme, _, rest = store.root.rpartition("://")
    above = rest.rstrip("/").rpartition("/")[0]
    while above:
        place = connect(f"{scheme}://{above}" if scheme else above)
        try:
            if place.exists(PATH):
                load(place)
                return place.root
        except NewerFormat:
            return place.root
        except LakeError:
            pass  # a file of another's that has this name, or a place that we may not look into
        above = above.rpartition("/")[0]
    return None


def _remedy(store: Store) -> str:
    """What to do where no lake is."""
    outer = around(store)
    if outer is not None:
        return f", but it lies inside one: name that, {outer}"
    names = store.names()
    if "_delta_log" in names:
        return ", but a Delta table: name the lake's own folder"
    if names - {"crawl.toml"}:
        return (
            ", but something else: name the lake's own folder, or make a lake in an empty one with"
            " `crawl init FOLDER`"
        )
    return f": make one with `crawl init {store.root}`"
