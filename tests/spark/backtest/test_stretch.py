"""What a service would have seen of history, and nothing more than that."""

from __future__ import annotations

import numpy as np
import pytest

from spark.backtest.judge import broker_loads
from spark.backtest.stretch import without_gaps
from tests.spark.backtest.shapes import stretch

NAN = float("nan")


def test_a_gap_keeps_the_newest_earlier_value_and_what_was_never_measured_is_nothing() -> None:
    series = np.array([[NAN, 1.0], [2.0, NAN], [NAN, NAN], [4.0, 3.0]], dtype=np.float32)
    assert without_gaps(series).tolist() == [[0.0, 1.0], [2.0, 1.0], [2.0, 1.0], [4.0, 3.0]]


def test_the_planner_sees_the_mean_of_the_horizon_before_its_window_and_never_the_future() -> None:
    history = stretch([[1.0], [2.0], [3.0], [1000.0]], [[0]])
    assert history.seen(3, 2)["network_in"].tolist() == [2.5]
    assert history.seen(1, 2)["network_in"].tolist() == [1.0]


def test_of_disk_the_newest_value_counts() -> None:
    history = stretch([[1.0], [1.0]], [[0]])
    history.load["disk"][:] = [[5.0], [7.0]]
    assert history.seen(2, 2)["disk"].tolist() == [7.0]


def test_a_partition_that_is_new_in_the_middle_is_not_moved_before_it_is_there() -> None:
    history = stretch([[1.0, NAN], [1.0, NAN], [1.0, 8.0], [1.0, 8.0]], [[0], [1]])
    history.first[1] = 2
    before, rows = history.snapshot(2, 2, history.replicas, history.replicas[:, 0].copy())
    assert rows.tolist() == [0]
    assert before.partition_count == 1
    after, rows = history.snapshot(3, 2, history.replicas, history.replicas[:, 0].copy())
    assert rows.tolist() == [0, 1]
    assert after.leader_load["network_in"].tolist() == [
        1.0,
        8.0,
    ]  # not halved by the window in which it was not there


def test_loads_of_brokers_are_those_that_the_snapshot_has() -> None:
    r = np.random.default_rng(3)
    history = stretch(
        r.uniform(1, 9, (1, 20)), [r.permutation(5)[: 1 + p % 3].tolist() for p in range(20)], 5
    )
    leader = history.replicas[:, 0].copy()
    snapshot, _ = history.snapshot(1, 1, history.replicas, leader)
    for resource in ("network_in", "disk", "replicas", "leaders", "leader_network_in"):
        mine = broker_loads(history, resource, 0, 1, history.replicas, leader)
        assert mine[0] == pytest.approx(snapshot.broker_load(resource))


def test_followers_cost_their_share_of_the_leader() -> None:
    history = stretch([[10.0]], [[0, 1]], 2)
    from dataclasses import replace

    lighter = replace(history, follower={"network_in": np.array([0.5])})
    loads = broker_loads(lighter, "network_in", 0, 1, lighter.replicas, lighter.replicas[:, 0].copy())
    assert loads.tolist() == [[10.0, 5.0]]
