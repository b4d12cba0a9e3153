import dataclasses
import pickle

import pytest

from crawl.quickrecord import Record, State, quickrecord, quickstate


@quickrecord
class Point(Record):
    x: int
    y: int = 2


@quickstate
class Place(State):
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


def test_a_record_gives_its_values_in_order() -> None:
    assert Point(y=1, x=3).values() == (3, 1)


def test_of_a_state_another_follows_and_the_first_stays() -> None:
    before = Place(x=1)
    after = before.but(y=5)
    assert (after, before) == (Place(x=1, y=5), Place(x=1))
    assert pickle.loads(pickle.dumps(after)) == after
