"""One small web, and its lakes, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.acceptance.rehearsal import Rehearsal, rehearsing


@pytest.fixture(scope="session")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """A web without chance, and lakes prepared for it."""
    with rehearsing(tmp_path_factory.mktemp("rehearsal")) as made:
        yield made
