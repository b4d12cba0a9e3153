"""The same crawl elsewhere: on a cluster of separate processes, on S3, behind a network that loses answers.

The same prepared lake is crawled in each place; every row must be that of the crawl on this machine.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawl.schema import TABLES
from cycles.session.setup import open_lake
from lake import snapshot
from lake.store import connect
from tests import proxy
from tests.acceptance.clusters import Cluster, cluster, looking
from tests.acceptance.rehearsal import FIRST, SECOND, Rehearsal, asked_again, checked, equal, gone
from tests.acceptance.s3lakes import cells, everything, holding, upload
from tests.s3 import CANARY


@pytest.fixture
def s3_copy(rehearsal: Rehearsal, s3_lake: str) -> str:
    """The lake after its first round, in a bucket."""
    rehearsal.after(2)
    upload(rehearsal.after(1), s3_lake)
    return s3_lake


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers, for lakes in folders."""
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.mark.timeout(180)
def test_a_separate_cluster_makes_the_same_rows_and_is_left_running(
    rehearsal: Rehearsal, two_workers: Cluster
) -> None:
    lake = rehearsal.copy(rehearsal.seeded())
    for number, now in enumerate((FIRST, SECOND), 1):
        mark = rehearsal.mark()
        rehearsal.finish(lake, now, "--scheduler", two_workers.address)
        assert asked_again(rehearsal.served.log(mark), []) == []
        equal(lake, rehearsal.after(number))
    assert two_workers.scheduler.code is None
    assert [worker.code for worker in two_workers.workers] == [None, None]


@pytest.mark.timeout(240)
def test_a_driver_killed_beside_a_separate_cluster_is_resumed_on_it(
    rehearsal: Rehearsal, two_workers: Cluster
) -> None:
    """The tasks of the dead driver run on there until their leases lapse or they are done."""
    rehearsal.after(2)
    lake = rehearsal.copy(rehearsal.after(1))
    mark = rehearsal.mark()
    with rehearsal.run(lake, SECOND, "--scheduler", two_workers.address) as command:
        rehearsal.wait_for_pages(mark, 40)
        command.kill()
    rehearsal.finish(lake, SECOND, "--scheduler", two_workers.address)
    equal(lake, rehearsal.after(2))
    times = [(one["host"], one["path"]) for one in rehearsal.served.log(mark)]
    assert len(times) - len(set(times)) <= len(rehearsal.served.web.hosts)


@pytest.mark.timeout(240)
def test_on_s3_a_separate_cluster_makes_the_same_rows_and_no_secret_shows(
    rehearsal: Rehearsal, s3_copy: str, tmp_path: Path
) -> None:
    mark = rehearsal.mark()
    with cluster(tmp_path / "cluster") as made, looking(made.address, tmp_path / "seen") as seen:
        with rehearsal.run(s3_copy, SECOND, "--scheduler", made.address) as command:
            assert command.ended(180) == 0, command.text()
        assert asked_again(rehearsal.served.log(mark), []) == []
        said = f"{made.said()}\n{command.text()}"
        looked = seen.read_bytes()
    equal(s3_copy, rehearsal.after(2))
    objects = everything(s3_copy)
    secret = json.loads(objects.pop("identity.json"))["secret"]
    assert b"fetch_group" in looked, "the cluster was not seen at work"
    for text in (CANARY, secret, repr(bytes.fromhex(secret))):
        assert text not in said
        assert text.encode() not in looked
        assert holding(objects, text) == []
        assert text not in cells(s3_copy, TABLES)
    assert bytes.fromhex(secret) not in looked


def test_what_travels_and_what_is_shown_holds_no_secret(rehearsal: Rehearsal, s3_copy: str) -> None:
    lake = open_lake(s3_copy)
    secret = json.loads(connect(s3_copy).read("identity.json"))["secret"]
    shown = repr(lake) + repr(lake.keyer()) + repr(snapshot.latest(lake.store))
    travelling = pickle.dumps((lake, snapshot.latest(lake.store)))
    for text in (CANARY, secret):
        assert text not in shown
        assert text.encode() not in travelling
    assert bytes.fromhex(secret) not in travelling
    with pytest.raises(Exception, match="secret"):
        pickle.dumps(lake.keyer())


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_round_whose_commits_answers_are_all_lost_is_committed_once(
    rehearsal: Rehearsal, s3_copy: str, s3_endpoint: str
) -> None:
    with proxy.swallowing(s3_endpoint) as lossy:
        rehearsal.finish(s3_copy, environ={"AWS_ENDPOINT_URL": lossy})
    equal(s3_copy, rehearsal.after(2))
    checked(s3_copy)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["refuses", pytest.param("answers 500", marks=pytest.mark.slow)])
def test_s3_that_fails_in_mid_round_is_told_and_the_round_goes_on_later(
    rehearsal: Rehearsal, s3_copy: str, s3_endpoint: str, how: str
) -> None:
    mark = rehearsal.mark()
    with (
        proxy.failing(s3_endpoint) as switch,
        rehearsal.run(s3_copy, environ={"AWS_ENDPOINT_URL": switch.endpoint}) as command,
    ):
        rehearsal.wait_for_pages(mark, 15)
        switch.fail(refuse=how == "refuses")
        code = command.ended(120)
        said = command.text()
    assert code == 4, said
    assert "Traceback" not in said, said
    rehearsal.finish(s3_copy)
    equal(s3_copy, rehearsal.after(2))
    checked(s3_copy)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_on_s3_a_killed_driver_costs_what_was_under_way_and_one_flush(
    rehearsal: Rehearsal, s3_copy: str
) -> None:
    mark = rehearsal.mark()
    with rehearsal.run(s3_copy) as command:
        rehearsal.wait_for_pages(mark, 60)
        command.kill()
        broken = gone(command)
    rehearsal.finish(s3_copy)
    equal(s3_copy, rehearsal.after(2))
    first: dict[tuple[str, str], float] = {}
    for one in rehearsal.served.log(mark):
        asked = first.setdefault((one["host"], one["path"]), one["start"])
        if asked != one["start"]:
            # a flush is begun every 2 s and takes a moment; nothing older than two of them is asked again
            assert broken - 6 < asked < broken, one
