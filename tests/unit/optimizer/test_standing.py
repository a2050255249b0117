"""When a round is worth its moves: otherwise a plan shuffles data for nobody's good, or two kinds of rounds undo each other for ever."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.search.standing import Standing, brings_nobody, is_clear_progress, is_progress, is_worthwhile


def standing(low: int, *potential: float, undone: int = 0, violations: int | None = None) -> Standing:
    """So many brokers out of band, and what each broker has of the potential."""
    return Standing(undone, low, low if violations is None else violations, np.array(potential), np.zeros(len(potential)))


BEFORE = standing(2, 1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("after", "worth_it", "clearly"),
    [
        (standing(0, 0.0, 0.0, 0.0), True, True),  # everybody is in band
        (standing(1, 0.0, 1.0, 0.0), True, True),
        (standing(1, 0.0, 2.09, 0.0), True, True),  # a little worse all in all, but one broker fewer
        (standing(1, 0.0, 2.2, 0.0), False, False),  # much worse for the others
        (standing(2, 0.9, 1.0, 0.0), True, False),  # nearer, but by little of what there is
        (standing(3, 0.7, 0.7, 0.1), True, True),  # one more is out, by little, and all are much nearer
        (standing(2, 0.999, 1.0, 0.0), False, False),
        (BEFORE, False, False),
    ],
)
def test_a_round_has_to_earn_its_moves(after: Standing, worth_it: bool, clearly: bool) -> None:
    assert is_progress(BEFORE, after) is worth_it
    assert is_clear_progress(BEFORE, after) is clearly


def test_repairs_are_always_worth_it() -> None:
    before, after = standing(2, 1.0, 1.0, undone=1), standing(3, 1.5, 1.5)
    assert is_progress(before, after)


def test_rounds_of_both_kinds_cannot_take_turns_for_ever() -> None:
    """What one kind may lose while brokers come into band is less than what the other has to win."""
    worst = standing(1, 0.0, 2.0 * 1.05)
    assert is_progress(standing(2, 1.0, 1.0), worst)
    assert not is_clear_progress(worst, standing(2, 1.0, 0.9))


def test_a_second_pass_over_a_million_replicas_has_to_bring_somebody_into_band() -> None:
    before = standing(3, 5.0, 5.0, undone=1)
    assert brings_nobody(before, standing(3, 1.0, 1.0, undone=1))  # however much nearer they are
    assert not brings_nobody(before, standing(2, 5.0, 5.0, undone=1))
    assert not brings_nobody(before, standing(4, 5.0, 5.0, undone=0))  # a repair is always worth it
    assert not brings_nobody(standing(0, 5.0), standing(0, 4.0))  # nobody is out: what is left are other goals


def test_rounds_after_which_as_many_are_out_have_to_bring_those_they_change_much_nearer() -> None:
    """A broker that nothing helps hides nobody else."""
    before = standing(2, 100.0, 1.0, 0.01)
    assert is_worthwhile(before, standing(2, 100.0, 0.7, 0.02))
    assert not is_worthwhile(before, standing(2, 100.0, 0.9, 0.01))
    assert not is_worthwhile(before, standing(3, 100.0, 0.9, 0.1))
    assert not is_worthwhile(before, before)
    assert is_worthwhile(before, standing(1, 100.0, 1.0, 0.0))
