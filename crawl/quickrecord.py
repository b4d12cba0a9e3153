"""Records of which a fetch makes one or more a request.

A frozen dataclass sets each field through `object.__setattr__`: with the 45 fields of a `Fetch` that takes
4.5 microseconds, three times as long as a plain one. `quickrecord` freezes for the type checker alone.
What always holds: mypy refuses to change such a record; `fields` and `replace` of dataclasses know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

__all__ = ["quickrecord"]

Record = TypeVar("Record")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def quickrecord(cls: type[Record]) -> type[Record]:
    """Makes a class a slotted dataclass whose fields are given by name."""
    made: Any = dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
    return made  # type: ignore[no-any-return]
