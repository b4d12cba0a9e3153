"""The hosts of the grown web: their names, domains, robots.txt and manners, before they have pages.

What always holds: every name ends in `.test`; the first host is open, quick and plain; a dead host's address
is the address of no live host.
"""

from __future__ import annotations

from tests.web.dice import Dice
from tests.web.model import DAY, EPOCH, Features, Host, Robots, RobotsPlan, address_of
from tests.web.words import phrase

__all__ = ["dead_names", "grow_hosts"]

_PREFIXES = ("www", "docs", "blog", "shop")
_SIZES = (2, 1, 3, 1, 1, 4, 2, 1)  # hosts a domain has, in turn
_LANGUAGES = ("en", "en", "de", "en", "fr", "en", "ru", "en")
_CYCLE = (
    Robots.ALLOW, Robots.FOLDER, Robots.MISSING, Robots.AGENT, Robots.ALLOW, Robots.REDIRECTED,
    Robots.PATTERN, Robots.MISSING, Robots.DELAY, Robots.OPENING, Robots.ALLOW, Robots.FORBIDDEN,
)  # fmt: skip
_PRIVATE = "Disallow: /private/\n"
_CLOSED = ((False, "/private/"),)
OPENING_AFTER = 10 * DAY  # a host of kind OPENING opens its folder this long after the web's first day


def _robots_kind(number: int) -> Robots:
    if number % 20 == 13:
        return Robots.SHUT
    if number % 30 == 17:
        return Robots.FAILING
    return _CYCLE[number % len(_CYCLE)]


def robots_plan(number: int, features: Features, agent: str) -> RobotsPlan:
    """The robots.txt of the host with this number."""
    if not features.robots:
        return RobotsPlan(kind=Robots.MISSING, status=404, text="")
    kind = _robots_kind(number)
    everyone = "User-agent: *\n"
    match kind:
        case Robots.ALLOW:
            return RobotsPlan(kind=kind, status=200, text=everyone + "Disallow:\n")
        case Robots.FOLDER | Robots.REDIRECTED:
            return RobotsPlan(kind=kind, status=200, text=everyone + _PRIVATE, rules=_CLOSED)
        case Robots.OPENING:
            opens_at = EPOCH + OPENING_AFTER
            return RobotsPlan(
                kind=kind, status=200, text=everyone + _PRIVATE, rules=_CLOSED, opens_at=opens_at
            )
        case Robots.AGENT:
            text = f"{everyone}Disallow: /\n\nUser-agent: {agent}\n{_PRIVATE}"
            return RobotsPlan(kind=kind, status=200, text=text, rules=_CLOSED)
        case Robots.DELAY:
            if not features.crawl_delay:
                return RobotsPlan(kind=Robots.ALLOW, status=200, text=everyone + "Disallow:\n")
            text = f"{everyone}Crawl-delay: {features.crawl_delay:g}\nDisallow:\n"
            return RobotsPlan(kind=kind, status=200, text=text, delay=features.crawl_delay)
        case Robots.PATTERN:
            text = f"{everyone}Disallow: /*.pdf$\n{_PRIVATE}Allow: /private/open-\n"
            rules = ((False, "/*.pdf$"), (False, "/private/"), (True, "/private/open-"))
            return RobotsPlan(kind=kind, status=200, text=text, rules=rules)
        case Robots.SHUT:
            text = f"User-agent: {agent}\nDisallow: /\n\n{everyone}Disallow:\n"
            return RobotsPlan(kind=kind, status=200, text=text, rules=((False, "/"),))
        case Robots.FAILING:
            return RobotsPlan(kind=kind, status=503, text="", rules=((False, "/"),))
        case _:
            return RobotsPlan(kind=kind, status=403 if kind is Robots.FORBIDDEN else 404, text="")


def grow_hosts(seed: int, count: int, features: Features, agent: str) -> list[Host]:
    """The live hosts, domain by domain."""
    hosts: list[Host] = []
    number = 0
    while len(hosts) < count:
        label = f"{phrase('en', 1, seed, 'domain', number).lower()}{number}"
        if features.unicode and number == 3:
            label = f"mü{label}".encode("idna").decode()
        domain = f"{label}.test"
        size = _SIZES[number % len(_SIZES)]
        names = [domain] if size == 1 else [f"{prefix}.{domain}" for prefix in _PREFIXES[:size]]
        for name in names[: count - len(hosts)]:
            hosts.append(_host(seed, name, domain, len(hosts), features, agent))
        number += 1
    return hosts


def _host(seed: int, name: str, domain: str, number: int, features: Features, agent: str) -> Host:
    dice = Dice(seed, "host", number)
    plan = robots_plan(number, features, agent)
    slow = number % 7 == 6 and number // 7 < features.slow_hosts
    lists = plan.status == 200 and plan.kind is not Robots.SHUT and dice.chance(features.sitemaps)
    if features.sitemaps and plan.status == 200 and number == 1:
        lists = True
    return Host(
        name=name,
        domain=domain,
        number=number,
        robots=plan,
        language=_LANGUAGES[number % len(_LANGUAGES)],
        latency_ms=features.latency_ms if slow else 0,
        gzip=number != 0 and dice.chance(features.gzip),
        chunked=number != 0 and dice.chance(features.chunked),
        sitemap=lists,
        feed=lists and number % 2 == 1,
    )


def dead_names(seed: int, features: Features, hosts: list[Host], network: str) -> tuple[str, ...]:
    """Names whose address refuses connections (none when the network has one address)."""
    live = {address_of(host.name, network) for host in hosts}
    dead: list[str] = []
    attempt = 0
    while len(dead) < features.dead_hosts and not network.endswith("/32") and "/" in network:
        name = f"www.dead{seed}-{attempt}.test"
        if address_of(name, network) not in live:
            dead.append(name)
        attempt += 1
    return tuple(dead)
