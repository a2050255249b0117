"""A plan must not end while one more single action would be acceptable and help a broker."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.parameters import LEAST_STEP, POLISH_SHARE
from optimizer.placement.evaluate import judge, propose
from optimizer.placement.log import Budget, Log, empty_log
from optimizer.placement.potential import badness, scores_low, thrift_of
from optimizer.placement.state import State
from optimizer.search.partners import broker_loads
from optimizer.search.polish import polish
from tests.oracle.clusters import case_of
from tests.oracle.runs import deviations, plan_document
from tests.unit.optimizer.actions import Trial, partition, usage


def some(seed: int) -> Trial:
    """Five brokers, the load of most partitions on the first two of them."""
    r = np.random.default_rng(seed)
    rows = []
    for _ in range(24):
        brokers = r.choice(5, size=int(r.integers(1, 4)), replace=False, p=[0.35, 0.35, 0.1, 0.1, 0.1]) + 1
        load = float(r.exponential(100.0))
        rows.append(partition(brokers.tolist(), topic=f"t{r.integers(4)}", network_in=load, disk=float(r.exponential(10.0))))
    topics = {"kind": "topic_distribution", "resource": "replicas", "name": "spread", "bound": 0.1}
    return Trial([1, 2, 3, 4, 5], rows, usage("network_in", bound=0.1), *([topics] if seed % 2 else []))


def logged(made: Trial, by_potential: bool, data: float = -1.0) -> Log:
    compiled, state = made.compiled, made.state
    log = empty_log(state.replicas.shape[1], 500)
    limits = np.array([-1.0, data, -1.0])
    budget = Budget(limits, np.zeros(3), compiled.replicas, compiled.lead, np.zeros(len(compiled.lead), np.int64))
    assert polish(compiled.problem, state, broker_loads(compiled.problem), budget, log, 0, by_potential) == log.used[0]
    return log


def polished(made: Trial, by_potential: bool) -> tuple[State, int]:
    log = logged(made, by_potential)
    return made.state, int(log.used[0])


@pytest.mark.parametrize("by_potential", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_single_action_is_left(seed: int, by_potential: bool) -> None:
    made = some(seed)
    state, published = polished(made, by_potential)
    assert published > 0
    problem = made.compiled.problem
    low = [b for b in range(5) if scores_low(problem, state, b)]
    for p in range(len(state.lead)):
        held = state.replicas[p]
        for s in np.flatnonzero(held >= 0).tolist():
            moves = [(s, b, state.lead[p]) for b in range(5) if b not in held] + [(s, held[s], s)]
            for slot, b, lead in moves:
                propose(state, 0, p, slot, b, lead)
                verdict = judge(problem, state, 1)
                for v in set(state.touched[: verdict.touched].tolist()) & set(low):
                    helps = ((state.action > 0.5) & (state.score[v, :-1] < 1.0)).any()
                    good = verdict.allowed and (verdict.touches_low if by_potential else verdict.better)
                    enough = verdict.gain > max(LEAST_STEP, POLISH_SHARE * badness(problem, state, v, True))
                    assert not (helps and good and enough), (p, slot, b, lead)


def test_a_broker_within_its_range_is_left_alone() -> None:
    made = Trial([1, 2], [partition([b], network_in=50.0) for b in (1, 1, 2, 2)], usage("network_in", bound=0.1))
    before = made.state.replicas.copy()
    state, published = polished(made, False)
    assert published == 0
    assert (state.replicas == before).all()


@pytest.mark.parametrize("seed", range(6))
def test_what_gains_most_for_its_cost_goes_first(seed: int) -> None:
    """The brokers with the lowest scores went first, each until it could not be helped: a small budget was spent on one of them."""
    made = alone(seed)
    problem, state = made.compiled.problem, made.state
    best = 0.0
    for p in range(len(state.lead)):
        for b in set(range(5)) - {int(state.replicas[p, 0])}:
            propose(state, 0, p, 0, b, 0)
            verdict = judge(problem, state, 1)
            best = max(best, verdict.gain * thrift_of(problem, p) if verdict.better else 0.0)
    log = logged(made, False)
    first = alone(seed).state
    propose(first, 0, int(log.partition[0]), 0, int(log.replicas[0, 0]), 0)
    assert judge(problem, first, 1).gain * thrift_of(problem, log.partition[0]) == pytest.approx(best)


def alone(seed: int) -> Trial:
    """As `some`, of one replica each."""
    r = np.random.default_rng(seed)
    brokers, sizes = r.choice([1, 2, 3, 4, 5], 40, p=[0.4, 0.3, 0.1, 0.1, 0.1]), r.exponential(10.0, 40)
    rows = [partition([broker], disk=size) for broker, size in zip(brokers.tolist(), sizes.tolist(), strict=True)]
    return Trial([1, 2, 3, 4, 5], rows, usage("disk", bound=0.1))


@pytest.mark.parametrize("seed", range(6))
def test_a_larger_budget_starts_with_the_same_steps(seed: int) -> None:
    every = logged(alone(seed), False)
    size, steps = alone(seed).compiled.problem.size, int(every.used[0])
    bytes_to = np.cumsum(size[every.partition[:steps]])
    for step in range(1, steps):
        part = logged(alone(seed), False, float(bytes_to[step] - 0.6 * size[every.partition[step]]))
        assert part.used[0] == step
        assert (part.partition[:step] == every.partition[:step]).all()
        assert (part.replicas[:step] == every.replicas[:step]).all()


def test_a_step_is_judged_again_if_the_rack_score_of_a_broker_changed_by_a_replica_elsewhere() -> None:
    """Racks are soft: a broker's score changes if another replica of one of its partitions moves. The planner refused its own step."""
    case = case_of(123660)
    assert deviations(case, plan_document(case)) == []
