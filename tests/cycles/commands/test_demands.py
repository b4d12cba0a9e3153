"""What hosts could demand, worked out from what a lake keeps of settings and robots.txt."""

from __future__ import annotations

import json

from cycles.commands import demands
from cycles.session import reading
from cycles.session.setup import Lake
from cycles.settings.config import load, to_json
from tests.lake import lakes, rows

SETTINGS = to_json(
    load(
        '[agent]\nname = "tester"\n[politeness]\nmin_delay = "20ms"\nfactor = 3.0\n'
        'in_flight = { "a.test" = 4 }\n',
        {},
    )
)
RULES = "User-agent: tester\nCrawl-delay: 2.5\n\nUser-agent: *\nCrawl-delay: 90\n"


def test_settings_and_the_rules_for_our_agent_say_what_was_demanded(lake: Lake) -> None:
    copies = rows.table(
        "robots",
        origin=["http://a.test", "http://b.test"],
        version=["r", "s"],
        text=[RULES, "User-agent: *\nDisallow: /delay"],
        round=[1, 1],
    )
    asked = rows.table(
        "fetches",
        kind=["page", "page"],
        origin=["http://a.test", "http://b.test"],
        robots_version=["r", "s"],
        policy_version=["p", "p"],
        round=[1, 1],
    )
    lakes.commit_round(lake.store, 1, robots=copies, fetches=asked, settings=(SETTINGS, "p"))
    with reading.reader(lake.store, rows.NOW) as reader:
        found = {name: json.loads(text) for name, text in demands.demands(reader).items()}
    assert found["delays"] == [{"policy": "p", "origin": "http://a.test", "version": "r", "delay": 2_500.0}]
    assert found["manners"] == [
        {"policy": "p", "floor": 20.0, "factor": 3.0, "cap": 60_000.0, "backoff": 2_000.0, "longest": 8.64e7}
    ]
    assert found["lanes"] == [{"policy": "p", "host": "a.test", "most": 4}]


def test_settings_of_a_newer_version_say_nothing(lake: Lake) -> None:
    lakes.commit_round(lake.store, 1, settings=('{"politeness": {"unheard_of": 1}}', "p"))
    with reading.reader(lake.store, rows.NOW) as reader:
        assert demands.demands(reader) == {"manners": "[]", "delays": "[]", "lanes": "[]"}
