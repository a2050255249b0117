"""The search: deterministic, blind to held-out weeks, and choosing by the rule that it states."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster_model.errors import InputError
from goals.document import load_goals
from spark.backtest.configuration import Configuration
from spark.backtest.outcome import Outcome
from spark.backtest.pareto import choose, ranks
from spark.backtest.run import confirmation, picked_of, split
from spark.backtest.search import Method, Space, search

DEFAULT = load_goals(None, "default")
SPACE = Space(
    DEFAULT, {"usage_distribution-network_in": 0.3, "usage_distribution-cpu": 0.2}, (3600.0, 14400.0)
)


class Fake:
    """A cheap stand-in for replays: wider bounds move less and leave more out of band. Remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, tuple[int, ...]]] = []

    def __call__(
        self, configurations: Sequence[Configuration], stretches: Sequence[int]
    ) -> Sequence[Outcome]:
        self.asked.append((len(configurations), tuple(stretches)))
        return [self.outcome(c, len(stretches)) for c in configurations]

    def outcome(self, c: Configuration, stretches: int) -> Outcome:
        wide = sum(c.bounds.values())
        return Outcome(out_of_band_hours=wide * stretches, bytes_moved=1e9 * stretches / wide / c.cadence)


@pytest.mark.parametrize("method", ["grid", "random", "halving"])
def test_the_same_seed_tries_the_same_and_the_goals_as_they_are_come_first(method: Method) -> None:
    first, second = (search(SPACE, method, 20, 7, (0, 1, 2, 3), Fake()) for _ in range(2))
    assert first == second
    own = first[0].configuration
    assert own.applied(DEFAULT).goals == DEFAULT.goals
    assert own.cadence == 3600.0
    assert len(first) == 20
    assert first[0].whole
    other = search(SPACE, method, 20, 8, (0, 1, 2, 3), Fake())
    assert (other == first) == (method == "grid")


def test_halving_gives_the_whole_training_span_to_the_better_ones_only() -> None:
    fake = Fake()
    found = search(SPACE, "halving", 27, 0, tuple(range(6)), fake)
    assert fake.asked[0] == (27, (0,))
    assert fake.asked[-1][1] == tuple(range(6))
    counts = [n for n, _ in fake.asked]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < 27
    assert sum(t.whole for t in found) == counts[-1]


def test_weights_are_above_zero_and_bounds_of_counts_are_not_narrowed() -> None:
    names = {"usage_distribution-replicas": 0.1, "usage_distribution-leaders": 0.1}
    for t in search(Space(DEFAULT, names, (3600.0,)), "random", 200, 0, (0,), Fake()):
        assert min(t.configuration.weights.values()) > 0
        assert min(t.configuration.bounds[n] for n in names) >= 0.1


def test_the_last_stretches_are_held_out_and_one_alone_cannot_be_split() -> None:
    assert split((0, 1, 2, 3, 4, 5), 1 / 3, "h") == ((0, 1, 2, 3), (4, 5))
    assert split((4, 7), 0.9, "h") == ((4,), (7,))
    with pytest.raises(InputError, match="at least two stretches"):
        split((3,), 1 / 3, "h")


def test_the_pareto_set_is_rank_zero_and_equal_points_share_it() -> None:
    assert ranks([(1, 5), (2, 2), (2, 2), (3, 3), (5, 1), (4, 4)]) == [0, 0, 0, 1, 0, 2]


def outcome(hours: float, data: float) -> Outcome:
    return Outcome(out_of_band_hours=hours, bytes_moved=data)


def test_the_choice_has_the_fewest_hours_at_no_more_bytes_or_the_other_way_round() -> None:
    found = [outcome(100, 10), outcome(50, 11), outcome(80, 10), outcome(70, 9), outcome(100, 4)]
    assert choose(found, 0, "hours").row == 3
    assert choose(found, 0, "cost").row == 4


def test_the_goals_stay_where_nothing_gains() -> None:
    found = choose([outcome(100, 10), outcome(99, 10), outcome(10, 10.5)], 0, "hours")
    assert found.row == 0
    assert "stay as they are" in found.why


def test_one_that_was_given_up_early_is_not_chosen_for_its_few_hours() -> None:
    found = search(SPACE, "halving", 27, 0, tuple(range(6)), Fake())
    finalists, picked, _ = picked_of(found, "cost")
    assert finalists[0] == 0
    assert all(found[n].whole for n in finalists)
    assert picked in finalists


def test_what_does_not_hold_on_held_out_weeks_is_not_recommended() -> None:
    good, _ = confirmation(outcome(100, 10), outcome(60, 10.5), False, "hours")
    worse, words = confirmation(outcome(100, 10), outcome(101, 5), False, "hours")
    dearer, _ = confirmation(outcome(100, 10), outcome(60, 15), False, "hours")
    assert (good, worse, dearer) == (True, False, False)
    assert "nothing is recommended" in words
