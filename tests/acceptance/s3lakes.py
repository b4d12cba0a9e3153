"""Lakes in buckets: copied there from a folder, looked at byte by byte, and read again in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lake.store import Store, connect

__all__ = ["everything", "upload"]


def upload(lake: Path, root: str) -> None:
    """Copy a lake in a folder to an empty place in a bucket, as `aws s3 sync` would."""
    store = connect(root)
    for path in sorted(lake.rglob("*")):
        if path.is_file():
            store.write(str(path.relative_to(lake)), path.read_bytes())


def everything(root: str) -> dict[str, bytes]:
    """All objects of a lake and their bytes."""
    store: Store = connect(root)
    return {stat.path: store.read(stat.path) for stat in store.list("")}


def holding(objects: dict[str, bytes], *secrets: str) -> list[str]:
    """Names of the objects that hold one of the texts."""
    wanted = [secret.encode() for secret in secrets]
    return [path for path, data in objects.items() if any(secret in data for secret in wanted)]


def cells(root: str, tables: Any) -> str:
    """All that the tables' columns say, as text: Parquet pages are compressed, bytes alone do not show it."""
    from tests.lakes import rows

    return "\n".join(line for table in tables for line in rows(root, table))
