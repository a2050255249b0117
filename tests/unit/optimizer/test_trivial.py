"""`trivial_change` leaves out a plan, or an independent part of one, that changes little: never a part of what changes much.

Found: one new empty broker beside 30 stayed empty, since each of the 30 would have changed little, and one at 146 % of 20 stayed there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optimizer.course import Placement
from optimizer.gain import Parts, noticed
from optimizer.placement.commit import build_state
from tests.unit.optimizer.actions import Trial, partition, usage
from tests.unit.optimizer.scenarios import IN, LEADERS, OUT, cluster, loads, planned

Document = dict[str, Any]
LITTLE: Document = {**IN, "trivial_change": 0.05}


def even(brokers: int, each: int, more: int = 0) -> list[tuple[list[int], dict[str, float]]]:
    """`each` partitions of 10 on every broker, and `more` on broker 1."""
    return [([b], {"network_in": 10.0, "network_out": 10.0}) for b in range(1, brokers + 1) for _ in range(each + (more if b == 1 else 0))]


@pytest.mark.parametrize("brokers", [10, 20, 30, 40])
def test_a_new_empty_broker_is_filled_though_each_giver_changes_little(brokers: int) -> None:
    snapshot = cluster(range(1, brokers + 2), even(brokers, 30))
    result = planned(snapshot, LITTLE)
    mean = brokers * 300 / (brokers + 1)
    assert loads(result, "network_in")[brokers + 1] >= 0.9 * mean
    assert not [b for b in result.brokers if b.violates]


@pytest.mark.parametrize("brokers", [10, 20])
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_hot_broker_is_relieved_though_each_taker_changes_little(brokers: int, share: float) -> None:
    snapshot = cluster(range(1, brokers + 1), even(brokers, 30, 14))
    result = planned(snapshot, {**IN, "trivial_change": share})
    assert loads(result, "network_in")[1] <= 1.1 * (30 * brokers + 14) * 10 / brokers
    assert not [b for b in result.brokers if b.violates]


def test_a_change_that_is_little_for_one_goal_and_much_for_another_is_made() -> None:
    """Goals without the key were left out together with those that have it."""
    lists = [([1, 2] if n < 16 else [2, 1], {"network_in": 1000.0, "network_out": 10.0}) for n in range(20)]
    snapshot = cluster([1, 2], lists)
    for entry in snapshot["partitions"]:
        entry["follower_load"] = {"network_in": 1000.0}
    result = planned(snapshot, {**IN, "trivial_change": 0.5}, OUT, LEADERS)
    assert not [b for b in result.brokers if b.violates]
    assert result.summary.leadership_changes >= 4


def test_of_two_independent_parts_the_little_one_is_left_out() -> None:
    """Brokers 1 and 2 are far off, 3 and 4 a little."""
    lists = [[1]] * 16 + [[2]] * 4 + [[3]] * 11 + [[4]] * 9
    trial = Trial([1, 2, 3, 4], [partition(on, network_in=10.0) for on in lists], usage(bound=0.05, trivial_change=0.12))
    start = Placement(trial.compiled.replicas, trial.compiled.lead)
    target = start.replicas.copy()
    target[:6], target[20] = 1, 3  # broker rows: six from 1 to 2, one from 3 to 4
    changed = noticed(trial.compiled, start, build_state(trial.compiled.problem, target, start.lead))
    assert changed.tolist() == [True, True, False, False]
    none, some = np.zeros(2, np.bool_), np.ones(2)
    parts = Parts(np.array([0] * 6 + [1]), some, some, ~none, none, trivial=np.array([False, True]))
    assert parts.too_small(0.1).tolist() == [False] * 6 + [True]
    mending = replace(parts, repairs=~none)
    assert not mending.too_small(0.1).any()


@pytest.mark.parametrize("share", [0.001, 0.05])
def test_any_value_ends_as_well_as_none(share: float) -> None:
    """Every value switched the finishing steps off."""
    sizes = [97.0, 61.0, 55.0, 43.0, 31.0, 29.0, 23.0, 17.0, 13.0, 11.0, 7.0, 5.0]
    snapshot = cluster([1, 2, 3], [([1 + n % 2], {"network_in": size}) for n, size in enumerate(sizes)])
    without = planned(snapshot, IN)
    with_one = planned(snapshot, {**IN, "trivial_change": share})
    assert sum(bool(b.violates) for b in with_one.brokers) <= sum(bool(b.violates) for b in without.brokers)
