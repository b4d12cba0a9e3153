from hypothesis import given
from hypothesis import strategies as st

from crawl.net.budget import Budget


def test_over_the_limit_one_user_goes_on_and_the_others_wait() -> None:
    budget: Budget[str] = Budget(100)
    assert budget.admits("a", 60)
    assert budget.admits("b", 40)
    assert budget.admits("a", 50)
    assert not budget.admits("b", 1)
    assert not budget.admits("c", 1)
    assert budget.admits("a", 500)
    assert budget.release("a") == ["b", "c"]
    assert budget.held == 40
    assert budget.admits("c", 60)


def test_one_that_ends_while_it_waits_is_not_woken() -> None:
    budget: Budget[str] = Budget(10)
    assert budget.admits("a", 11)
    assert not budget.admits("b", 1)
    assert budget.release("b") == []
    assert budget.release("a") == []


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 60), st.booleans()), max_size=60))
def test_it_never_loses_a_byte_nor_a_user(steps: list[tuple[int, int, bool]]) -> None:
    budget: Budget[int] = Budget(100)
    shares = dict.fromkeys(range(5), 0)
    waiting: set[int] = set()
    for user, size, ends in steps:
        if ends:
            woken = budget.release(user)
            shares[user] = 0
            waiting.discard(user)
            assert set(woken) <= waiting
            waiting -= set(woken)
        elif budget.admits(user, size):
            shares[user] += size
        else:
            waiting.add(user)
        assert budget.held == sum(shares.values())
    for user in shares:
        waiting -= set(budget.release(user)) | {user}
    assert not waiting
    assert budget.held == 0
