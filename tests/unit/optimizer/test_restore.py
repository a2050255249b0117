"""A service beside a controller should not take several times the memory that a plan needs."""

from __future__ import annotations

import numpy as np

from optimizer.placement.commit import build_state
from optimizer.placement.restore import copy_state, overwrite, which_differ
from tests.unit.optimizer.actions import Trial, partition, usage

NOWHERE = 77_777


def trial() -> Trial:
    """Most of the room for lists is for the one broker that has nearly everything."""
    return Trial([1, 2, 3], [partition([b], network_in=1.0) for b in (1, 2, 3, *[3] * 40)], usage(bound=0.1))


def test_room_behind_replica_lists_is_not_copied() -> None:
    state = trial().state
    for b, n in enumerate(state.hosts):
        state.hosted[b, n:] = NOWHERE
    copy = copy_state(state)
    for b, n in enumerate(state.hosts):
        assert np.array_equal(copy.hosted[b, :n], state.hosted[b, :n])
        assert np.array_equal(copy.mark[b, :n], state.mark[b, :n])
    assert not (copy.hosted == NOWHERE).any()


def test_a_state_becomes_another() -> None:
    made = trial()
    replicas = made.state.replicas.copy()
    replicas[5:20, 0] = 0
    other = build_state(made.compiled.problem, replicas, made.state.lead)
    overwrite(other, made.state)
    for name in ("replicas", "lead", "place", "hosts", "load", "score"):
        assert np.array_equal(getattr(other, name), getattr(made.state, name)), name
    for b, n in enumerate(made.state.hosts):
        assert np.array_equal(other.hosted[b, :n], made.state.hosted[b, :n])


def test_partitions_that_differ_are_found_once_each_among_those_named() -> None:
    r = np.random.default_rng(0)
    one, lead = r.integers(-1, 4, (50, 3)), r.integers(-1, 3, 50)
    other, other_lead = one.copy(), lead.copy()
    other[[3, 7, 20], [0, 2, 1]] += 1
    other_lead[[7, 9]] += 1
    named = np.array([0, 3, 3, 7, 8, 9, 9, 49])
    assert which_differ(named, one, lead, other, other_lead).tolist() == [3, 7, 9]
    assert which_differ(named[:0], one, lead, other, other_lead).tolist() == []
