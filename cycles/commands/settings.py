"""`crawl config`: the settings of a lake, shown with where they come from, explained, and set.

What always holds: `crawl.toml` is replaced in one step, with its comments kept, and only by a text that
loads; who set what is in the table `audit`. What a setting means stands in `crawl.policy` and nowhere else.
"""

from __future__ import annotations

import json
import os
from datetime import datetime

from crawl.errors import SettingsError
from crawl.policy import PUBLIC_FLOOR
from cycles.session import ledger
from cycles.session.setup import SETTINGS, settings_text, who
from cycles.session.workspace import store_at
from cycles.settings import config, soundness
from cycles.words.output import grid, to_json
from lake import identity
from lake.store import Store

__all__ = ["change", "explained", "shown"]


def _store(root: str) -> Store:
    """The lake's store, settings unread, since they may be what is to be mended. Raises NoSuchLake."""
    store = store_at(root)
    identity.load(store)
    return store


def shown(root: str, form: str, key: str | None = None) -> str:
    """Settings: key, value, and whether it comes from the environment, the file or the default.

    All of them, those of a section, or one. Raises SettingsError for a key that is none.
    """
    wanted, text = set(config.keys_of(key)), settings_text(_store(root))
    rows = [row for row in config.show(text, os.environ) if row[0] in wanted]
    if form == "json":
        return to_json({name: {"value": value, "from": origin} for name, value, origin in rows})
    told = [
        (name, json.dumps(value, ensure_ascii=False), "" if at == "default" else at)
        for name, value, at in rows
    ]
    return grid(["setting", "value", "from"], told, longest=10_000).rstrip() + _missing(text)


def _missing(text: str) -> str:
    """A word on what the settings name and this machine has not."""
    try:
        soundness.check_files(config.load(text, os.environ, SETTINGS), SETTINGS)
    except SettingsError as exc:
        return f"\n\nno round can run with these on this machine: {exc}"
    return ""


def explained(root: str, key: str | None) -> str:
    """What one setting does, or all of a section, or all, and what is in force.

    Raises SettingsError for an unknown key. Where the settings do not load, the reason stands in the place of
    what is in force.
    """
    store, keys = _store(root), config.keys_of(key)
    try:
        rows = config.show(settings_text(store), os.environ)
        there = {name: _in_force(value, at) for name, value, at in rows}
    except SettingsError as exc:
        there = dict.fromkeys(keys, f"in force: nothing, the settings are wrong ({exc})")
    return "\n\n".join(f"{config.explain(known)}\n{there[known]}" for known in keys)


def _in_force(value: object, origin: str) -> str:
    source = {"default": "the default", "file": f"from {SETTINGS}", "environment": "from the environment"}
    return f"in force: {json.dumps(value, ensure_ascii=False)} ({source.get(origin, origin)})"


def change(root: str, key: str, value: str, now: datetime) -> str:
    """Set a key; what it is now. Raises SettingsError, and changes nothing then."""
    store = _store(root)
    before = settings_text(store)
    after = config.set_key(before, key, value, store.url(SETTINGS))
    if key == "tls.ca_file" or key.startswith("content."):
        soundness.check_files(config.load(after, {}, store.url(SETTINGS)), store.url(SETTINGS))
    store.write(SETTINGS, after.encode())
    ledger.audit(store, at=now, who=who(), action="config set", subject=key, detail=value)
    try:
        told = {name: (there, at) for name, there, at in config.show(after, os.environ)}
    except SettingsError as exc:  # the environment is wrong: the file is not
        return f"{key} is set in {SETTINGS}; but: {exc}"
    there, at = told[key]
    note = "" if at == "file" else f" (from the {at}, which wins over {SETTINGS})"
    return f"{key} = {json.dumps(there, ensure_ascii=False)}{note}{_floor(key, there)}"


def _floor(key: str, there: object) -> str:
    """A word on a gap that holds for hosts of one's own only, or that slow answers no longer widen."""
    if key == "politeness.factor" and not there:
        return "; gaps no longer grow with the time that answers take"
    if key != "politeness.min_delay" or config.duration(there) >= PUBLIC_FLOOR:
        return ""
    return f"; public hosts are never asked faster than every {PUBLIC_FLOOR.total_seconds():g} s all the same"
