"""How much one public address is asked for, however many hosts it carries.

A host's own gap says nothing of the machine behind it: a thousand hosts with a second between requests are a
thousand requests a second to one address. So an address has a cap besides: requests open at once, and the
least time between two starts.

The size of shared hosting counts. One cap is meant for an address with up to `address_domains` domains; one
that carries more is a larger machine, or a balancer before many, and may carry proportionally more, up to
`address_shares` caps: at four requests a second, ten thousand blogs would take an hour for their robots.txt
alone. Domains are counted and not hosts, because hosts below one domain are one owner's and free to make up:
a wildcard record must not raise the rate at somebody else's address. The bound stands because even ten
thousand domains can be led to one victim.

What always holds: k groups that share a cap start together no more requests a second than one would. It
resolves nothing, counts nothing and waits for nobody (crawl.fetching.gates does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crawl.policy import Politeness

__all__ = ["Cap", "of", "pinned", "unplanned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """What one group may do at one address."""

    in_flight: int
    delay_s: float  # between two starts

    def divided(self, groups: int) -> Cap:
        """A group's part where so many share it; one request at a time is the least."""
        return Cap(in_flight=max(1, self.in_flight // groups), delay_s=self.delay_s * groups)


def of(policy: Politeness, domains: int) -> Cap:
    """The cap of an address that carries so many domains, for the whole crawl."""
    shares = min(policy.address_shares, max(1.0, domains / policy.address_domains))
    return Cap(
        in_flight=int(policy.address_in_flight * shares),
        delay_s=policy.address_delay.total_seconds() / shares,
    )


def unplanned(policy: Politeness, groups: int) -> Cap:
    """A group's cap at an address that the plan did not know: other groups may come upon it as well.

    It is divided by all groups, but no further than a lone host of it would notice: among more groups than
    `address_in_flight` the whole may exceed the cap in the one round in which the address is first met.
    """
    return of(policy, 0).divided(max(1, min(groups, policy.address_in_flight)))


def pinned(addresses: Iterable[str], permits: Callable[[str], bool]) -> str | None:
    """Which of a host's addresses is asked, unless it fails: the first that may be; None if none may."""
    return next((address for address in addresses if permits(address)), None)
