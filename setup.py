"""Compiles what a fetch runs through for every request (mypyc) where CRAWL_COMPILE is set; else nothing.

The sources are the same ones. What mypyc does not take, or leaves to the interpreter, is written out in a
copy of them below build/: what decorators make of records, and slots, which native classes have anyway.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
COPY = ROOT / "build" / "compiled"
#: packages that are copied, because the hot modules import them
PACKAGES = ("crawl", "lake")
#: compiled together, so that calls between them are direct
HOT = (
    *("crawl/keys", "crawl/outcomes", "crawl/records", "crawl/scope"),
    *("crawl/documents/screen", "crawl/documents/sniff"),
    *("crawl/fetching/addressing", "crawl/fetching/agenda", "crawl/fetching/asking", "crawl/fetching/chains"),
    *("crawl/fetching/gates", "crawl/fetching/hostqueue", "crawl/fetching/journal", "crawl/fetching/ledger"),
    *(
        "crawl/fetching/lanes",
        "crawl/fetching/lines",
        "crawl/fetching/requestrows",
        "crawl/fetching/robotswatch",
    ),
    *("crawl/fetching/secondtries", "crawl/fetching/turns"),
    *("crawl/net/budget", "crawl/net/content", "crawl/net/curlloop", "crawl/net/dns"),
    *("crawl/net/exchange", "crawl/net/incoming", "crawl/net/transport"),
    *("crawl/politeness/addresscap", "crawl/politeness/clock", "crawl/politeness/joined"),
    *("crawl/robots/copies", "crawl/robots/matching", "crawl/robots/rules"),
    "lake/journal",
)
_RECORD = "dataclass(init=False, kw_only=True, unsafe_hash=True)"


def written_out(source: str) -> str:
    """A module with its decorators' work done by hand: `quickrecord`, `quickstate`, `dataclass(slots=True)`.

    Raises ValueError for a record with a default that is no constant expression of its field.
    """
    tree = ast.parse(source)
    found = False  # whether something was written that needs names of its own
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and ast.unparse(field.annotation) == "memoryview":
                found = True
                field.annotation = ast.Name("Any")  # mypyc looks for it among the names of the module
        for place, decorator in enumerate(node.decorator_list):
            if isinstance(decorator, ast.Name) and decorator.id in ("quickrecord", "quickstate"):
                node.decorator_list[place] = ast.parse(_RECORD, mode="eval").body
                node.body += _methods(node, state=decorator.id == "quickstate")
                node.bases = []  # Record or State: what they promise is written out
                found = True
            elif isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "dataclass":
                decorator.keywords = [word for word in decorator.keywords if word.arg != "slots"]
    if found:
        after = next(i for i, node in enumerate(tree.body) if isinstance(node, ast.ImportFrom))
        tree.body[after + 1 : after + 1] = ast.parse(
            "from dataclasses import dataclass\nfrom typing import Any"
        ).body
    return ast.unparse(ast.fix_missing_locations(tree))


def _methods(record: ast.ClassDef, *, state: bool) -> list[ast.stmt]:
    """Constructor, values or successor, and what pickle asks for, of a class whose fields are annotated."""
    fields = [node for node in record.body if isinstance(node, ast.AnnAssign)]
    names = [ast.unparse(field.target) for field in fields]
    if any(isinstance(field.value, ast.Call) for field in fields):
        raise ValueError(f"{record.name}: a default that is made anew for each record is not written out")
    given = ", ".join(
        f"{name}: {ast.unparse(field.annotation)}" + (f" = {ast.unparse(field.value)}" if field.value else "")
        for name, field in zip(names, fields, strict=True)
    )
    own = ", ".join(f"self.{name}" for name in names)
    lines = [f"def __init__(self, *, {given}) -> None:", *(f"    self.{name} = {name}" for name in names)]
    taken = ", ".join(f"{name}=values[{place}]" for place, name in enumerate(names))
    lines += [
        "@staticmethod",
        f"def _of(values: tuple[Any, ...]) -> {record.name}:",
        f"    return {record.name}({taken})",
    ]
    lines += ["def __reduce__(self) -> tuple[Any, ...]:", f"    return ({record.name}._of, (({own},),))"]
    if state:
        same = ", ".join(f"{name}=self.{name}" for name in names)
        lines += [
            f"def but(self, **changes: Any) -> {record.name}:",
            f"    made = {record.name}({same})",
            "    for name, value in changes.items():",
            "        setattr(made, name, value)",
            "    return made",
        ]
    elif any(ast.unparse(base) == "Record" for base in record.bases):
        lines += ["def values(self) -> tuple[Any, ...]:", f"    return ({own},)"]
    return ast.parse("\n".join(lines)).body


def _extensions() -> list[object]:
    """The group of extension modules, made of copies below build/."""
    from mypyc.build import mypycify

    for package in PACKAGES:
        shutil.rmtree(COPY / package, ignore_errors=True)
        shutil.copytree(ROOT / package, COPY / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    paths = [f"{name}.py" for name in HOT]
    for path in paths:
        (COPY / path).write_text(written_out((ROOT / path).read_text(encoding="utf-8")), encoding="utf-8")
    here = os.getcwd()
    os.chdir(COPY)
    try:
        options = ["--config-file=", "--ignore-missing-imports", *paths]
        return list(
            mypycify(options, opt_level="3", debug_level="1", group_name="crawl", target_dir=str(COPY / "c"))
        )
    finally:
        os.chdir(here)


def main() -> None:
    """What setuptools asks of a project, with or without extension modules."""
    if not os.environ.get("CRAWL_COMPILE"):
        setup()
    elif importlib.util.find_spec("mypyc") is None:
        setup(setup_requires=["mypy[mypyc]>=2.4"])  # pip asks for this first, and then again
    else:
        setup(ext_modules=_extensions())


if __name__ == "__main__":
    main()
