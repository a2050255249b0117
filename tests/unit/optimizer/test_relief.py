"""Repairs of racks at the end of a search: only changes that can repair are judged, and none of these is missed."""

from __future__ import annotations

import random

import pytest

from kernels.compiled import kernel
from optimizer.options import PlanOptions
from optimizer.placement.evaluate import REPAIRS_RACKS, judge, propose
from optimizer.placement.log import Budget, Log, budget_for, empty_log
from optimizer.placement.state import State
from optimizer.problem import Problem
from optimizer.search.relief import eases_rack, is_broken, is_urgent, relieve
from tests.unit.optimizer.actions import Trial, partition


@kernel
def relieved(problem: Problem, state: State, budget: Budget, log: Log) -> int:
    """`relieve`, which only kernels call."""
    return relieve(problem, state, budget, log, False)


RACKS = {"kind": "rack_aware", "hard": True}


def drawn(seed: int) -> Trial:
    """6 to 9 brokers in two to four racks of unequal sizes, with partitions of two to four replicas anywhere."""
    chance = random.Random(seed)
    count, racks = chance.randint(6, 9), chance.choice(["aab", "abcd", "aaabc"])
    brokers = [{"id": b + 1, "rack": racks[b % len(racks)]} for b in range(count)]
    parts = [partition(chance.sample(range(1, count + 1), chance.randint(2, 4)), network_in=chance.random()) for _ in range(12)]
    return Trial(brokers, parts, RACKS)


@pytest.mark.parametrize("seed", range(20))
def test_a_replica_repairs_a_rack_only_where_it_leaves_a_full_one_for_one_with_room(seed: int) -> None:
    trial = drawn(seed)
    problem, state, eased = trial.compiled.problem, trial.state, 0
    for p in range(len(state.lead)):
        assert not is_urgent(problem, state, p)
        eases = False
        for s in range(len(trial.slots(p))):
            for target in set(range(len(trial.ids))) - set(state.replicas[p].tolist()):
                propose(state, 0, p, s, target, int(state.lead[p]))
                repairs = bool(judge(problem, state, 1).repairs >> REPAIRS_RACKS & 1)
                assert eases_rack(problem, state, p, s, target) == repairs, (p, s, target)
                eases = eases or repairs
        assert is_broken(problem, state, p) or not eases
        eased += eases
    assert eased


@pytest.mark.parametrize("seed", range(20))
def test_no_repair_of_a_rack_that_one_action_can_make_is_left(seed: int) -> None:
    trial = drawn(seed)
    problem, state = trial.compiled.problem, trial.state
    budget = budget_for(trial.compiled, PlanOptions())
    while relieved(problem, state, budget, empty_log(state.replicas.shape[1], 100)):
        pass
    for p in range(len(state.lead)):
        for s in range(len(trial.slots(p))):
            for target in set(range(len(trial.ids))) - set(state.replicas[p].tolist()):
                propose(state, 0, p, s, target, int(state.lead[p]))
                assert not judge(problem, state, 1).repairs >> REPAIRS_RACKS & 1, (p, s, target)


def test_missing_leaders_and_dead_brokers_are_urgent() -> None:
    parts = [partition([1, 2], leader=None, network_in=1.0), partition([3, 2], leader=2, network_in=1.0), partition([1, 2], network_in=1.0)]
    trial = Trial([1, 2, {"id": 3, "state": "dead"}], parts, RACKS)
    assert [bool(is_urgent(trial.compiled.problem, trial.state, p)) for p in range(3)] == [True, True, False]
