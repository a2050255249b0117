"""When a round is worth its moves: otherwise a plan shuffles data for no gain."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.placement.standing import Standing, is_progress


def standing(low: int, *potential: float, urgent: int = 0, undone: int = 0, violations: int | None = None) -> Standing:
    """So many brokers outside their range, and what each broker has of the potential."""
    return Standing(urgent, undone, 0, low, low if violations is None else violations, np.array(potential), np.zeros(len(potential)))


BEFORE = standing(2, 1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("after", "worth_it"),
    [
        (standing(0, 0.0, 0.0, 0.0), True),  # every broker is within range
        (standing(1, 0.0, 1.0, 0.0), True),
        (standing(1, 0.0, 2.09, 0.0), True),  # a little worse all in all, but one broker fewer
        (standing(1, 0.0, 2.2, 0.0), False),  # much worse for the others
        (standing(2, 0.9, 1.0, 0.0), True),  # nearer, but by little of what there is
        (standing(3, 0.7, 0.7, 0.1), True),  # one more is out, by little, and all are much nearer
        (standing(2, 0.999, 1.0, 0.0), False),
        (BEFORE, False),
    ],
)
def test_a_round_has_to_earn_its_moves(after: Standing, worth_it: bool) -> None:
    assert is_progress(BEFORE, after) is worth_it


def test_repairs_are_always_worth_it() -> None:
    before, after = standing(2, 1.0, 1.0, undone=1), standing(3, 1.5, 1.5)
    assert is_progress(before, after)


def test_where_no_broker_is_outside_a_round_still_has_to_bring_something() -> None:
    before = standing(0, 1.0, 1.0, undone=3)  # repairs that cannot be made keep the search going
    assert not is_progress(before, standing(0, 1.0, 1.001, undone=3))
    assert is_progress(before, standing(0, 1.0, 1.001, undone=2))


def test_a_hard_limit_that_is_mended_is_worth_soft_goals() -> None:
    before, after = standing(1, 0.1, 0.0)._replace(broken=1), standing(3, 1.5, 1.5)
    assert is_progress(before, after)
    assert not is_progress(before, after._replace(broken=1))


def test_a_dead_broker_that_is_emptied_is_worth_crowded_racks() -> None:
    before, after = standing(19, 1.0, 1.0, urgent=22, undone=34), standing(21, 1.5, 1.5, undone=48)
    assert is_progress(before, after)
