import dataclasses
import pickle

import pytest

from crawl.quickrecord import quickrecord


@quickrecord
class Point:
    x: int
    y: int = 2


def test_it_is_a_slotted_dataclass_whose_fields_are_given_by_name() -> None:
    point = Point(x=1)
    assert (point.x, point.y) == (1, 2)
    assert not hasattr(point, "__dict__")
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[misc]
    assert [field.name for field in dataclasses.fields(Point)] == ["x", "y"]  # type: ignore[arg-type]
    assert dataclasses.replace(point, y=3) == Point(x=1, y=3)  # type: ignore[type-var]


def test_equal_records_are_one_in_a_set_and_travel() -> None:
    assert {Point(x=1), Point(x=1), Point(x=2)} == {Point(x=1), Point(x=2)}
    assert pickle.loads(pickle.dumps(Point(x=1))) == Point(x=1)
