"""One small web and its lakes, and one cluster, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from cycles.dask.cluster import cluster
from tests.acceptance.rehearsal import Rehearsal, rehearsing


@pytest.fixture(scope="session")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """A web without chance, and lakes prepared for it."""
    with rehearsing(tmp_path_factory.mktemp("rehearsal")) as made:
        yield made


@pytest.fixture(scope="session")
def workers() -> Iterator[str]:
    """Address of a scheduler with two workers, for rounds that are run in this process."""
    with cluster(None, 2) as client:
        yield str(client.scheduler.address)
