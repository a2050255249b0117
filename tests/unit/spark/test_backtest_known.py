"""What every search of a backtest tries, whatever chance draws: other policies, and loads that plans do not level left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark.backtest.configuration import Configuration
from spark.backtest.outcome import Outcome
from spark.backtest.search import Space, known, not_levelled, search
from tests.unit.spark.replays import DEFAULT, SPACE, Fake


def test_the_policy_is_tried_as_it_is_with_bytes_alone_and_with_more_gain() -> None:
    """At loads over a day, ten times the gain saved a third of the bytes at no more hours; drawn by chance, hardly any search had it."""
    drawn = known(Space(DEFAULT, {}, (3600.0, 7200.0), (1800.0, 86_400.0)), 60, 0)
    assert {(c.min_gain, c.move_cost) for c in drawn} == {(None, None), (None, 0.0), (1.0, None)}
    for written in (0, "0", "0 MB"):
        alone = replace(SPACE, goals=replace(DEFAULT, policy={"move_cost": written}))
        assert {c.move_cost for c in known(alone, 60, 0)} == {None}, "the goals have it themselves"


NETWORK, DISK = "usage_distribution-network_in", "usage_distribution-disk"


class Hourly(Fake):
    """Plans remove a tenth of the hours of all loads but network, which changes faster than they come."""

    def outcome(self, c: Configuration) -> Outcome:
        planned = {name: 1000.0 if c.mode == "never" else 990.0 if "network" in name else 900.0 for name in c.bounds}
        return replace(super().outcome(c), by_goal=planned)


@pytest.mark.parametrize("seed", range(5))
def test_loads_that_plans_do_not_level_are_left_alone_together_at_the_longest_horizons(seed: int) -> None:
    """With 20 brokers network took half of the moves for 1 % of its hours, and most searches never left both of its goals alone."""
    space = replace(SPACE, horizons=(1800.0, 21_600.0, 86_400.0))
    tried = [t.configuration for t in search(space, "halving", 48, seed, (0, 1, 2, 3), Hourly())]
    wide = [c for c in tried if c.what.endswith("left alone")]
    own = space.own.bounds
    assert wide
    for c in wide:
        assert {name for name, bound in c.bounds.items() if bound > own[name]} == {n for n in own if "network" in n}
    assert {c.cadence for c in wide if c.horizon == 86_400.0} == set(space.cadences)


def test_where_loads_are_left_alone_counts_are_kept_well_inside_what_is_scored() -> None:
    """Moves for the loads left alone had kept counts level by the way: without them counts took up to 2 % of all hours with 20 brokers."""
    own = SPACE.own.bounds
    counts = {"usage_distribution-replicas", "usage_distribution-leaders"}
    for useless in ((), (NETWORK,)):
        tried = known(SPACE, 60, 0, useless)
        alone = [c for c in tried if c.what.endswith("left alone")]
        assert alone
        for c in alone:
            assert {name for name, bound in c.bounds.items() if bound < own[name]} == counts
            assert all(c.bounds[name] == pytest.approx(0.6 * own[name]) for name in counts)
        others = [c for c in tried if c not in alone]
        assert others
        assert all(c.bounds[name] == own[name] for c in others for name in counts), "goals as they are stay so"


def test_a_load_is_not_levelled_where_plans_remove_far_fewer_of_its_hours_than_of_another() -> None:
    none = Outcome(by_goal=dict.fromkeys(SPACE.loads, 100.0))

    def left(**hours: float) -> tuple[str, ...]:
        return not_levelled(SPACE, Outcome(by_goal={name: hours.get(name.split("-")[1], 80.0) for name in SPACE.loads}), none)

    assert left() == ()
    assert left(network_in=94.0, disk=92.0) == (NETWORK,)
    assert left(network_in=96.0, disk=140.0) == (NETWORK, DISK)
    assert left(**{name.split("-")[1]: 99.0 for name in SPACE.loads}) == (), "then it is the goals that are of no use, not one load"
    assert left(**{name.split("-")[1]: 110.0 for name in SPACE.loads}) == ()
    assert not_levelled(SPACE, Outcome(), Outcome()) == ()
