"""More threads give the plan sooner, not another plan; and nothing that goes wrong in one is lost."""

from __future__ import annotations

import threading

import pytest

from optimizer.threads import Threads


def test_parts_of_a_task_run_side_by_side() -> None:
    meet = threading.Barrier(3, timeout=60)  # none passes before three threads stand there
    with Threads(3) as threads:
        threads.share(lambda _: meet.wait(), 3)


def test_a_task_beside_runs_while_the_caller_goes_on() -> None:
    caller_went_on = threading.Event()
    with Threads(2) as threads:
        result = threads.beside(lambda: caller_went_on.wait(60))
        threads.begin()
        caller_went_on.set()
        assert result()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_part_is_done_once_by_any_number_of_threads(count: int) -> None:
    done: list[int] = []
    with Threads(count) as threads:
        threads.share(done.append, 20)
        threads.share(done.append, 0)
    assert sorted(done) == list(range(20))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_goes_wrong_in_a_thread_is_raised_and_no_thread_is_left(count: int) -> None:
    def fails(part: int) -> None:
        if part == 7:
            raise ArithmeticError(part)

    before = threading.active_count()
    with pytest.raises(ArithmeticError), Threads(count) as threads:
        threads.share(fails, 20)
    with Threads(count) as threads:
        beside = threads.beside(lambda: fails(7))
        threads.settle()  # is no place for it
        with pytest.raises(ArithmeticError):
            beside()
    assert threading.active_count() == before
