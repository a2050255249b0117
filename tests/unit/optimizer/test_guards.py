"""A service must not act more often than it was allowed to, also after a restart, and must say what it waits for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from optimizer.detectors import Deed, Guards, may_act

NOW = 1_800_000_000_000
HOUR = 3_600_000


def cluster(*states: str) -> Snapshot:
    return build_snapshot(
        {"version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
         "brokers": [{"id": b, "state": state} for b, state in enumerate(states)], "partitions": []}, "cluster.json",
    )  # fmt: skip


THREE = cluster("active", "active", "active")


def test_nothing_holds_back_without_guards() -> None:
    gate = may_act(Guards(), THREE, [Deed(NOW, 10_000)], NOW)
    assert (gate.open, gate.reasons, gate.moves_left, gate.wait_ms) == (True, (), None, 0)


def test_brokers_that_are_not_active_do_not_count() -> None:
    gate = may_act(Guards(), cluster("active", "dead", "draining", "excluded"), [], NOW)
    assert (gate.open, gate.wait_ms) == (False, 0)
    assert gate.reasons == ("1 active broker, at least 2 are asked for",)


@pytest.mark.parametrize(("ago", "is_open"), [(0, False), (59_999, False), (60_000, True)])
def test_cooldown(ago: int, is_open: bool) -> None:
    gate = may_act(Guards(cooldown_ms=60_000), THREE, [Deed(NOW - ago, 1), Deed(NOW - 2 * HOUR, 9)], NOW)
    assert (gate.open, gate.wait_ms) == (is_open, 0 if is_open else 60_000 - ago)


def test_cooldown_in_words() -> None:
    gate = may_act(Guards(cooldown_ms=300_000), THREE, [Deed(NOW - 30_000, 1)], NOW)
    assert gate.reasons == ("the last changes ended 30 s ago; the cooldown of 5 min goes on for 4 min",)


@pytest.mark.parametrize(
    ("deeds", "left"),
    [
        pytest.param([(0, 1), (2 * HOUR, 1)], 9, id="DAN-H2"),
        pytest.param([(HOUR, 1)], 9, id="DAN-H3: exactly an hour ago counts"),
        pytest.param([(HOUR + 1, 1)], 10, id="a millisecond more does not"),
        pytest.param([(1, 4), (2, 5)], 1, id="in any order"),
        pytest.param([(1, 10)], 0, id="used up"),
        pytest.param([(1, 40)], 0, id="more than used up"),
    ],
)
def test_moves_per_hour(deeds: Sequence[tuple[int, int]], left: int) -> None:
    gate = may_act(Guards(moves_per_hour=10), THREE, [Deed(NOW - ago, moves) for ago, moves in deeds], NOW)
    assert (gate.moves_left, gate.open) == (left, left > 0)


def test_when_the_hour_has_room_again() -> None:
    done = [Deed(NOW - 1000, 3), Deed(NOW - 50 * 60_000, 5), Deed(NOW - 40 * 60_000, 5)]
    gate = may_act(Guards(moves_per_hour=8), THREE, done, NOW)
    assert gate.reasons == ("13 changes in the last hour; 8 are allowed, the next at 08:20:00 UTC",)
    assert not may_act(Guards(moves_per_hour=8), THREE, done, NOW + gate.wait_ms - 1).open
    assert may_act(Guards(moves_per_hour=8), THREE, done, NOW + gate.wait_ms).open


def test_a_limit_of_none_an_hour_stays_shut() -> None:
    gate = may_act(Guards(moves_per_hour=0), THREE, [], NOW)
    assert (gate.open, gate.wait_ms) == (False, 0)
