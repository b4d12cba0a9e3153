"""Settings: `crawl.toml` at the lake's root and the environment → the frozen values of `crawl.policy`.

What always holds: an unknown or ill-typed key is a SettingsError that names the place, the key and the
nearest valid one; the environment (`CRAWL_POLITENESS__MIN_DELAY=20ms`) wins over the file, the file over
the defaults; durations are written with a unit ("20ms", "1s", "12h", "5d"), sizes may be ("10MB",
"500KiB"). Nothing here is a secret: those live in each process's own environment and in the lake's identity.

It does not decide what a setting means: that is said beside each field of `crawl.policy`, from where
`explain` reads.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import hashlib
import inspect
import json
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Final, get_type_hints

import tomlkit
from pydantic import TypeAdapter, ValidationError
from tomlkit.exceptions import TOMLKitError

from crawl import policy
from crawl.errors import SettingsError
from crawl.policy import Settings
from cycles.settings import soundness

__all__ = [
    "DEFAULT_TOML",
    "explain",
    "from_json",
    "keys_of",
    "load",
    "policy_version",
    "set_key",
    "show",
    "to_json",
]

PREFIX: Final = "CRAWL_"
#: variables of ours in the environment that are no settings
NO_SETTINGS: Final = frozenset({"CRAWL_CASES"})

DEFAULT_TOML: Final = """\
# Settings of this crawl. `crawl config LAKE` shows all, `crawl config LAKE explain KEY` says what one does.

[agent]
name = ""        # required before any public host is asked
contact = ""     # https://… or mailto:…

[politeness]
min_delay = "1s"

[scope]
domains = []     # empty: anywhere
hosts = []
exclude = []

[round]
window = "10m"
merge_every = 1
"""

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*(?:([kmgt])(i)?)?b\s*", re.IGNORECASE)
_BYTES: Final = 'a whole number of bytes, or a number with its unit, like "10MB" or "500KiB"'
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")


def duration(text: object) -> timedelta:
    """A duration with its unit, e.g. "90s" or "1.5h". Raises ValueError."""
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError('a duration is a number with a unit (ms, s, m, h or d), like "10m"')
    try:
        return timedelta(seconds=float(found[1]) * _UNITS[found[2]])
    except OverflowError as exc:
        raise ValueError("a duration of more than a billion days is none") from exc


def size(text: str) -> int:
    """A number of bytes with its unit, e.g. "10MB" (of 1000) or "500KiB" (of 1024). Raises ValueError."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"write {_BYTES}")
    step, power = 1024 if found[3] else 1000, " kmgt".find((found[2] or " ").lower())
    return round(float(found[1]) * float(step**power))


def written(value: object) -> object:
    """A setting as `crawl.toml` would write it; inverse of what `load` accepts."""
    if isinstance(value, timedelta):
        return _duration_text(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _duration_text(value: timedelta) -> str:
    ms = round(value / timedelta(milliseconds=1))
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


@cache
def _sections() -> Mapping[str, type]:
    return {f.name: get_type_hints(Settings)[f.name] for f in dataclasses.fields(Settings)}


@cache
def _keys() -> tuple[str, ...]:
    return tuple(f"{name}.{f.name}" for name, kind in _sections().items() for f in dataclasses.fields(kind))


def _unknown(key: str, place: str) -> SettingsError:
    near = _nearest(key)
    hint = (
        f"the nearest valid key is {' or '.join(map(repr, near))}"
        if near
        else "`crawl config LAKE` lists all"
    )
    return SettingsError(f"{place}: there is no setting {key!r}; {hint}")


def _nearest(key: str) -> list[str]:
    """What may be meant; a bare name is that of a section, or of the keys that end in it."""
    if "." in key:
        return difflib.get_close_matches(key, _keys(), n=1, cutoff=0.6)
    by_name: dict[str, list[str]] = {section: [section] for section in _sections()}
    for known in _keys():
        by_name.setdefault(known.partition(".")[2], []).append(known)
    near = difflib.get_close_matches(key, list(by_name), n=1, cutoff=0.6)
    return by_name[near[0]] if near else []


@cache
def _wanted(section: str) -> Mapping[str, Any]:
    """Declared types of a section's keys."""
    return get_type_hints(_sections()[section])


@cache
def _adapter(section: str, name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_wanted(section)[name])


def _check(section: str, name: str, value: object, place: str) -> object:
    """One value in its declared type. Raises SettingsError."""
    wanted = _wanted(section).get(name)
    if wanted is None:
        raise _unknown(f"{section}.{name}", place)
    try:
        if wanted is timedelta:
            return duration(value)
        if isinstance(value, str) and _is_size(section, name):
            return size(value)
        given = _frozen(value)
        checked: object = _adapter(section, name).validate_python(given, strict=True)
    except ValidationError as exc:
        raise SettingsError(
            f"{place}: {section}.{name} = {_plain(value)} does not fit: write {_written_as(section, name)}"
        ) from exc
    except ValueError as exc:
        raise SettingsError(f"{place}: {section}.{name} = {_plain(value)} does not fit: {exc}") from exc
    if isinstance(checked, int | float) and not isinstance(checked, bool) and checked < 0:
        raise SettingsError(f"{place}: {section}.{name} = {value!r} must not be negative")
    return checked


def _frozen(value: object) -> object:
    """Lists as tuples, in tables too."""
    if isinstance(value, dict):
        return {name: _frozen(each) for name, each in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _plain(value: object) -> str:
    """A value as TOML writes it, more or less."""
    return json.dumps(value, ensure_ascii=False, default=str)


#: how values of a type are written
_WANTED: Final[Mapping[object, str]] = {
    str: 'a text, like "x"',
    int: "a whole number",
    float: "a number, like 0.5",
    bool: "true or false",
    tuple[str, ...]: 'a list of texts, like ["x", "y"]',
    tuple[int, ...]: "a list of whole numbers, like [80, 443]",
    tuple[float, float, float]: "a list of three numbers",
    tuple[float, float, float, float, float]: "a list of five numbers",
    Mapping[str, str]: 'a table of texts, like { "name" = "value" }',
    Mapping[str, int]: 'a table of whole numbers, like { "name" = 4 }',
    Mapping[str, tuple[str, ...]]: 'a table of lists, like { "name" = ["x", "y"] }',
}


def _written_as(section: str, name: str) -> str:
    return _BYTES if _is_size(section, name) else _WANTED.get(_wanted(section)[name], "another type of value")


def _is_size(section: str, name: str) -> bool:
    """Sizes say bytes in their names."""
    return _wanted(section)[name] is int and name.endswith("bytes")


def _from_file(text: str, place: str) -> dict[str, dict[str, object]]:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise SettingsError(f"{place} is not valid TOML: {exc}") from exc
    found: dict[str, dict[str, object]] = {}
    for section, values in raw.items():
        if section not in _sections():
            raise _unknown(section, place)
        if not isinstance(values, dict):
            raise SettingsError(f"{place}: {section} is a section; write [{section}] and its keys below it")
        found[section] = {name: _check(section, name, value, place) for name, value in values.items()}
    return found


def _from_environment(environ: Mapping[str, str]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or variable in NO_SETTINGS:
            continue
        place = f"environment variable {variable}"
        section, two, name = variable.removeprefix(PREFIX).lower().partition("__")
        if not two:
            _refuse_one_underscore(section, place)
            continue
        if section not in _sections():
            raise _unknown(f"{section}.{name}", place)
        found.setdefault(section, {})[name] = _check(section, name, _literal(section, name, text), place)
    return found


def _refuse_one_underscore(name: str, place: str) -> None:
    """A name that begins with a section, and was meant as one of its keys. Raises SettingsError."""
    for section, kind in _sections().items():
        if name.startswith(section + "_"):
            keys = [f.name for f in dataclasses.fields(kind)]
            for near in difflib.get_close_matches(name.removeprefix(section + "_"), keys, n=1, cutoff=0.8):
                right = f"{PREFIX}{section}__{near}".upper()
                raise SettingsError(f"{place} sets nothing: write {right}, with two underscores")


def _literal(section: str, name: str, text: str) -> object:
    """The text as TOML where it is, else as it stands: quotes are optional, and so are brackets of a list,
    whose items are then separated by commas.
    """
    wanted = _wanted(section).get(name)
    given = _toml(text)
    if wanted is str and not isinstance(given, str):
        return text  # a name may look like a number
    if not _is_list(wanted) or isinstance(given, list):
        return given
    if given is not text or "," not in text:
        return [given]
    return [_toml(item) for part in text.split(",") if (item := part.strip())]


def _toml(text: str) -> object:
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text


def load(text: str, environ: Mapping[str, str], place: str = "crawl.toml") -> Settings:
    """Settings from the text of `crawl.toml` and the environment. Raises SettingsError."""
    settings = Settings()
    for layer in (_from_file(text, place), _from_environment(environ)):
        for section, values in layer.items():
            changed = dataclasses.replace(getattr(settings, section), **values)
            settings = dataclasses.replace(settings, **{section: changed})
    soundness.check(settings, place)
    return settings


def to_json(settings: Settings) -> str:
    """All settings as canonical JSON: what a round pins."""
    plain = {
        section: {
            f.name: written(getattr(getattr(settings, section), f.name)) for f in dataclasses.fields(kind)
        }
        for section, kind in _sections().items()
    }
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def from_json(text: str) -> Settings:
    """Inverse of `to_json`. Raises SettingsError for what a newer version wrote."""
    raw: dict[str, dict[str, Any]] = json.loads(text)
    return Settings(
        **{
            section: _sections()[section](
                **{name: _check(section, name, value, "pinned settings") for name, value in values.items()}
            )
            for section, values in raw.items()
        }
    )


def policy_version(settings: Settings) -> str:
    """Twelve hex digits that name these settings."""
    return hashlib.blake2b(to_json(settings).encode(), digest_size=6).hexdigest()


def show(text: str, environ: Mapping[str, str]) -> list[tuple[str, object, str]]:
    """(key, value as written, where it comes from: default, file or environment) of every setting."""
    settings = load(text, environ)
    in_file, in_env = _from_file(text, "crawl.toml"), _from_environment(environ)
    rows = []
    for key in _keys():
        section, name = key.split(".")
        layers = (("environment", in_env), ("file", in_file))
        origin = next((label for label, layer in layers if name in layer.get(section, {})), "default")
        rows.append((key, written(getattr(getattr(settings, section), name)), origin))
    return rows


@cache
def _comments() -> Mapping[str, str]:
    """What stands beside each field of crawl.policy: key → sentence."""
    lines = inspect.getsource(policy).splitlines()
    tree = ast.parse("\n".join(lines))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: dict[str, str] = {}
    for section, kind in _sections().items():
        for node in classes[kind.__name__].body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                last = lines[(node.end_lineno or node.lineno) - 1]
                above = lines[node.lineno - 2].strip()
                inline = last.partition("  # ")[2].strip()
                found[f"{section}.{node.target.id}"] = inline or above.removeprefix("#: ")
    return found


def keys_of(key: str | None) -> list[str]:
    """The keys that a key, a section or nothing names. Raises SettingsError for what is neither."""
    if key is None:
        return list(_keys())
    found = [known for known in _keys() if known == key or known.startswith(key + ".")]
    if not found:
        raise _unknown(key, "crawl config")
    return found


def explain(key: str) -> str:
    """What a setting does, its default, and how it is set. Raises SettingsError for an unknown key."""
    if key not in _keys():
        raise _unknown(key, "crawl config explain")
    section, name = key.split(".")
    wanted = _wanted(section)[name]
    lines = [f"{key}: {_comments()[key]}"]
    if wanted is timedelta:
        lines.append('written: a number with its unit (ms, s, m, h or d), like "10m"')
    else:
        many = "; `crawl config LAKE set` takes them with commas, too: x,y ([] for none)"
        lines.append(f"written: {_written_as(section, name)}{many if _is_list(wanted) else ''}")
    default = written(getattr(getattr(Settings(), section), name))
    doc = inspect.cleandoc(_sections()[section].__doc__ or "")
    lines += [f"default: {json.dumps(default, ensure_ascii=False)}", f"[{section}] {doc}"]
    return "\n".join(lines)


def _is_list(wanted: object) -> bool:
    return getattr(wanted, "__origin__", None) is tuple


def set_key(text: str, key: str, value: str, place: str = "crawl.toml") -> str:
    """`crawl.toml` with one key set, its comments kept. Raises SettingsError, naming `place`."""
    if key not in _keys():
        raise _unknown(key, "crawl config set")
    section, name = key.split(".")
    given = _literal(section, name, value)
    _check(section, name, given, f"value for {key}")
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as exc:
        raise SettingsError(
            f"{place} is not valid TOML: {exc}; mend it with an editor, then set again"
        ) from exc
    if section not in document:
        document[section] = tomlkit.table()
    document[section][name] = given
    changed = tomlkit.dumps(document)
    load(changed, {}, place)
    return changed
