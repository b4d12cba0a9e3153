"""How many bytes of bodies a task holds at once.

What always holds: what is admitted stays under the limit, but for one user (the holder), which may always go
on, so that it ends and gives its bytes back; the others wait. It pauses nobody: that is for its users.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Budget"]

User = TypeVar("User", bound=Hashable)


class Budget(Generic[User]):
    """A number of bytes shared by users that come, grow and end."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._shares: dict[User, int] = {}
        self._holder: User | None = None
        self._waiting: dict[User, None] = {}

    def admits(self, user: User, size: int) -> bool:
        """Whether `user` may take `size` more bytes now; if not, `release` tells when to ask again."""
        if self.held + size > self.limit:
            if self._holder is None:
                self._holder = user
            if self._holder is not user:
                self._waiting[user] = None
                return False
        self.add(user, size)
        return True

    def add(self, user: User, size: int) -> None:
        """`user` holds `size` bytes more, asked or not (fewer, if negative)."""
        self.held += size
        self._shares[user] = self._shares.get(user, 0) + size

    def release(self, user: User) -> list[User]:
        """`user` has ended; those that should ask again, first come first."""
        self.held -= self._shares.pop(user, 0)
        self._waiting.pop(user, None)
        if self._holder is user:
            self._holder = None
        if not self._waiting:
            return []
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting
