"""`crawl config`: the settings of a lake, shown with where they come from, explained, and set.

What always holds: `crawl.toml` is replaced in one step, with its comments kept, and only by a text that
loads; who set what is in the table `audit`. What a setting means stands in `crawl.policy` and nowhere else.
"""

from __future__ import annotations

import json
import os
from datetime import datetime

from crawl.errors import SettingsError
from cycles import config, ledger
from cycles.output import grid, to_json
from cycles.setup import SETTINGS, settings_text, who
from cycles.workspace import store_at
from lake import identity
from lake.store import Store

__all__ = ["change", "explained", "shown"]


def _store(root: str) -> Store:
    """The lake's store, settings unread, since they may be what is to be mended. Raises NoSuchLake."""
    store = store_at(root)
    identity.load(store)
    return store


def shown(root: str, form: str) -> str:
    """All settings: key, value, and whether it comes from the environment, the file or the default."""
    rows = config.show(settings_text(_store(root)), os.environ)
    if form == "json":
        return to_json({key: {"value": value, "from": origin} for key, value, origin in rows})
    told = [
        (key, json.dumps(value, ensure_ascii=False), "" if at == "default" else at) for key, value, at in rows
    ]
    return grid(["setting", "value", "from"], told, longest=10_000).rstrip()


def explained(root: str, key: str | None) -> str:
    """What one setting does, or all of them. Raises SettingsError for an unknown key."""
    _store(root)
    keys = [key] if key is not None else [known for known, _, _ in config.show("", {})]
    return "\n\n".join(config.explain(known) for known in keys)


def change(root: str, key: str, value: str, now: datetime) -> str:
    """Set a key; what it is now. Raises SettingsError, and changes nothing then."""
    store = _store(root)
    before = settings_text(store)
    after = config.set_key(before, key, value)
    store.write(SETTINGS, after.encode())
    ledger.audit(store, at=now, who=who(), action="config set", subject=key, detail=value)
    try:
        told = {name: (there, at) for name, there, at in config.show(after, os.environ)}
    except SettingsError as exc:  # the environment is wrong: the file is not
        return f"{key} is set in {SETTINGS}; but: {exc}"
    there, at = told[key]
    note = "" if at == "file" else f" (from the {at}, which wins over {SETTINGS})"
    return f"{key} = {json.dumps(there, ensure_ascii=False)}{note}"
