"""Records of which a fetch makes one or more a request.

A frozen dataclass sets each field through `object.__setattr__`: with the 45 fields of a `Fetch` that takes
4.5 microseconds, three times as long as a plain one. `quickrecord` freezes for the type checker alone.
What always holds: mypy refuses to change such a record; `fields` and `replace` of dataclasses know it.

Compiled (setup.py), both decorators are replaced by what they do, written out for each class.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar, dataclass_transform

__all__ = ["Record", "State", "quickrecord", "quickstate"]

Class = TypeVar("Class")


class Record:
    """What every record of `quickrecord` can do."""

    __slots__ = ()

    def values(self) -> tuple[Any, ...]:
        """Its fields, in order. The decorator writes it out: operator.attrgetter takes four times as long."""
        raise NotImplementedError


class State:
    """What every record of `quickstate` can do."""

    def but(self, **changes: Any) -> Self:
        """`dataclasses.replace` for what changes with every request: in a tenth of its time."""
        made = object.__new__(type(self))
        object.__setattr__(made, "__dict__", self.__dict__ | changes)
        return made


@dataclass_transform(kw_only_default=True, frozen_default=True)
def quickrecord(cls: type[Class]) -> type[Class]:
    """Makes a class a slotted dataclass whose fields are given by name."""
    made: Any = dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
    if issubclass(made, Record):
        made.values = eval(f"lambda r: ({' '.join(f'r.{field.name},' for field in fields(made))})")
    return made  # type: ignore[no-any-return]


@dataclass_transform(kw_only_default=True, frozen_default=True)
def quickstate(cls: type[Class]) -> type[Class]:
    """Makes a class a dataclass, without slots, of which one record follows from another."""
    made: Any = dataclass(kw_only=True, unsafe_hash=True)(cls)
    return made  # type: ignore[no-any-return]
