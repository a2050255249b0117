"""A replay: what a configuration would have done, which an operator is to believe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from optimizer.plan import Plan
from spark.backtest.configuration import Configuration, Mode
from spark.backtest.judge import beyond, broker_loads
from spark.backtest.outcome import POINTS, Outcome
from spark.backtest.replay import Placement, replay
from spark.backtest.stretch import Stretch
from tests.spark.backtest.shapes import HOUR, START, level, stretch, swinging


def run(history: Stretch, bound: float = 0.1, cadence: float = HOUR, reference: float = 0.1) -> Outcome:
    return replay(
        history, level(), level(reference), Configuration(cadence, bounds={"net": bound}, horizon=HOUR)
    )


def test_a_band_that_nothing_leaves_never_moves_anything() -> None:
    wide = run(swinging(), bound=50.0)
    assert (wide.bytes_moved, wide.actions, wide.plans, wide.fired) == (0, 0, 0, 0)
    assert wide.looks == 4 * 24 - 1


def test_a_tight_bound_moves_more_bytes_and_leaves_fewer_hours_outside() -> None:
    tight, loose = run(swinging(), bound=0.1), run(swinging(), bound=0.8)
    assert tight.bytes_moved > loose.bytes_moved > 0
    assert tight.out_of_band_hours < loose.out_of_band_hours < run(swinging(), bound=50.0).out_of_band_hours


def test_rarer_looks_move_less() -> None:
    assert run(swinging(), cadence=12 * HOUR).bytes_moved < run(swinging(), cadence=HOUR).bytes_moved


def test_longer_means_do_not_follow_the_day_to_and_fro_and_are_scored_over_the_same_time() -> None:
    short, long = (
        replay(swinging(), level(), level(), Configuration(4 * HOUR, horizon=horizon), begin=24) for horizon in (HOUR, 24 * HOUR)
    )
    assert long.bytes_moved < 0.7 * short.bytes_moved
    assert long.moved_back < short.moved_back
    assert (long.broker_hours, long.looks) == (short.broker_hours, short.looks)


def test_the_course_is_when_brokers_were_outside_and_adds_up_to_the_hours() -> None:
    found = run(swinging())  # 95 windows, fewer than points
    assert [at for at, _ in found.course] == [START + 3600.0 * h for h in range(1, 96)]
    assert sum(outside for _, outside in found.course) == pytest.approx(found.out_of_band_hours)
    assert sum(day.hours for day in found.by_day) == pytest.approx(found.out_of_band_hours)
    assert [day.day for day in found.by_day] == [START // 86_400 + n for n in range(4)]
    assert sum(day.bytes_moved for day in found.by_day) == found.bytes_moved > 0
    assert sum(day.replica_moves for day in found.by_day) == found.replica_moves > 0
    long = run(swinging(days=10))
    assert len(long.course) == POINTS


def test_phases_look_at_other_times_and_their_mean_is_of_one_replay() -> None:
    found = [replay(swinging(), level(), level(), Configuration(12 * HOUR, horizon=HOUR), phase=n / 3) for n in range(3)]
    assert len({one.out_of_band_hours for one in found}) == 3
    mean = Outcome.mean(found)
    assert mean.out_of_band_hours == pytest.approx(sum(one.out_of_band_hours for one in found) / 3)
    assert mean.broker_hours == found[0].broker_hours
    assert mean.course[0][0] == found[0].course[0][0]
    assert [day.phase for day in mean.by_day] == [0] * 4 + [1] * 4 + [2] * 4
    assert Outcome.mean(found[:1]) == found[0]


def test_plans_act_on_what_earlier_plans_left_and_hours_are_those_of_that_placement() -> None:
    history = swinging(days=2)
    replicas, leader = history.replicas.copy(), history.replicas[:, 0].copy()
    moved: list[tuple[int, npt.NDArray[np.int32]]] = [(1, leader.copy())]

    def told(window: int, made: Plan) -> None:
        for change in made.proposals:
            now = [int(history.broker_ids[b]) for b in replicas[change.partition]]
            assert list(change.replicas_before) == now
            replicas[change.partition] = [b - 10 for b in change.replicas_after]
        moved.append((window, replicas[:, 0].copy()))

    found = replay(history, level(), level(), Configuration(HOUR, horizon=HOUR), told=told)
    hours = 0
    (goal,) = [g for g in level().goals if g.kind == "usage_distribution"]
    for (begin, placed), end in zip(moved, [w for w, _ in moved[1:]] + [48], strict=True):
        loads = broker_loads(history, "network_in", begin, end, placed[:, None], placed)
        assert loads.sum() == pytest.approx(history.filled["network_in"][begin:end].sum())
        hours += int(beyond(history, goal, loads).sum())
    assert found.out_of_band_hours == hours
    assert found.broker_hours == 47 * 3
    assert found.plans == len(moved) - 1 > 3


def test_a_replica_that_comes_back_within_a_day_counts_as_moved_back_and_a_day_later_it_does_not() -> None:
    history = stretch(np.ones((2, 1)), [[0]])
    rows = np.array([0], dtype=np.int32)

    def go(placement: Placement, broker: int, hours: float) -> None:
        before, _ = history.snapshot(1, 1, placement.replicas, placement.leader)
        there = np.array([[broker]], dtype=np.int32)
        placement.apply(rows, before, before.with_placement(there, there[:, 0].copy()), hours * HOUR)

    soon = Placement(history.replicas.copy(), history.replicas[:, 0].copy())
    go(soon, 1, 0)
    go(soon, 2, 5)
    assert soon.moved_back == 0
    go(soon, 0, 24)
    assert soon.moved_back == 1
    late = Placement(history.replicas.copy(), history.replicas[:, 0].copy())
    go(late, 1, 0)
    go(late, 0, 24.5)
    assert late.moved_back == 0


def test_copies_take_their_time_and_the_placement_is_the_old_one_until_then() -> None:
    """Else goals that plan most look best: 5 PB in two weeks were "moved" on a cluster that takes in 0.6 PB a day."""
    settings = Configuration(HOUR, horizon=HOUR)
    history = stretch(np.full((24, 3), 100.0), [[0], [0], [2]], disk=3.6e9)
    at_once = replay(history, level(), level(), settings)
    assert (at_once.out_of_band_hours, at_once.bytes_moved, at_once.looks) == (0.0, 3.6e9, 23)
    slow = replay(replace(history, throttle=3.6e9 / (5 * HOUR)), level(), level(), settings)  # five hours for one partition
    assert (slow.plans, slow.copying_hours, slow.bytes_moved) == (1, 5.0, 3.6e9)
    assert slow.out_of_band_hours == 3 * 5  # two brokers off by their load, and the third since copies are load, too
    assert slow.looks == 23 - 4
    assert sum(day.bytes_moved for day in slow.by_day) == slow.bytes_moved


def test_no_plan_and_plans_that_know_what_comes_are_the_two_ends() -> None:
    """Between them is what a configuration can gain at all."""
    history = swinging()

    def mode(which: Mode) -> Outcome:
        return replay(history, level(), level(), Configuration(6 * HOUR, horizon=6 * HOUR, mode=which), begin=24)

    never, planned, hindsight = mode("never"), mode("planned"), mode("hindsight")
    assert (never.looks, never.plans, never.bytes_moved) == (0, 0, 0.0)
    assert hindsight.out_of_band_hours < planned.out_of_band_hours
    assert hindsight.out_of_band_hours < never.out_of_band_hours
    few = replay(history, level(), level(), Configuration(HOUR, horizon=HOUR, max_moves=1))
    assert 0 < few.replica_moves <= few.plans


def test_what_the_end_cuts_off_was_not_copied_and_no_more_is_than_the_throttle_lets_through() -> None:
    history = stretch(np.full((24, 3), 100.0), [[0], [0], [2]], disk=3.6e12)
    found = replay(replace(history, throttle=1e6), level(), level(), Configuration(HOUR, horizon=HOUR))
    assert found.bytes_moved == pytest.approx(1e6 * 23 * HOUR, rel=0.001)
    assert found.copying_hours == 23
    swings = replay(replace(swinging(), throttle=1e5), level(), level(), Configuration(HOUR, horizon=HOUR))
    assert swings.bytes_moved <= 1e5 * 3 * 96 * HOUR
    assert swings.bytes_moved < run(swinging()).bytes_moved


def test_load_that_swings_from_day_to_night_makes_a_tight_band_move_the_same_replicas_to_and_fro() -> None:
    assert run(swinging(), bound=0.1).moved_back > 0


def test_the_same_history_and_configuration_give_the_same_outcome() -> None:
    assert run(swinging()) == run(swinging())


def test_configurations_are_scored_by_the_bounds_of_the_reference_and_not_their_own() -> None:
    history = swinging()
    asis = run(history, bound=50.0, reference=0.1)
    assert asis.out_of_band_hours > run(history, bound=50.0, reference=0.9).out_of_band_hours
    assert run(history, bound=60.0, reference=0.1) == asis


def test_persistence_of_the_policy_holds_back_a_plan_as_it_does_in_the_service() -> None:
    patient = level(more="policy: {detector: {kind: goal_band, persist: {hits_low: 6, hits_high: 6}}}\n")
    found = replay(swinging(), patient, level(), Configuration(HOUR, horizon=HOUR))
    assert 0 < found.plans < run(swinging()).plans


def test_peak_is_over_the_mean_without_capacities_and_over_capacity_with() -> None:
    history = stretch(np.full((10, 2), 6.0), [[0], [0]], 2)
    assert run(history, bound=50.0).peak_utilization == pytest.approx(2.0)
    from dataclasses import replace

    roomy = replace(history, capacity={"network_in": np.array([48.0, 48.0]), "disk": np.array([4e9, 4e9])})
    assert run(roomy, bound=50.0).peak_utilization == pytest.approx(0.25)


def test_a_weight_for_a_goal_that_is_not_there_is_refused() -> None:
    with pytest.raises(KeyError, match="nett"):
        Configuration(HOUR, weights={"nett": 2.0}).applied(level())
