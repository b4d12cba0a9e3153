import pytest

from crawl.errors import LakeError
from lake import delta, deltalog
from tests.lake import lakes
from tests.lake.keeping import seen_rounds


@pytest.fixture
def lake(tmp_path):
    return lakes.new(tmp_path / "lake")


def test_logs_are_cut_below_the_checkpoint_that_kept_versions_need(lake):
    seen_rounds(lake, 8)
    handle = delta.handle(lake, "seen", 4)
    handle.create_checkpoint()
    assert 4 == deltalog.trim(lake, "seen", 6)
    assert 0 == deltalog.trim(lake, "seen", 3)
    for version in (4, 6, 8):
        assert version == len(delta.files(lake, "seen", version))
    with pytest.raises(LakeError):
        delta.files(lake, "seen", 3)
