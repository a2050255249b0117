"""What the search's state and the record of scores say while actions are carried out, one after the other.

Loads, counts and scores are kept up to date by differences. Were one of them off, every score from there on would be wrong, in the
plan and in the report.
"""

from __future__ import annotations

import numpy as np
import pytest

from optimizer import problem as tables
from optimizer.placement.commit import build_state
from optimizer.placement.log import empty_log
from optimizer.placement.record import BrokenRuleError, Record, record
from optimizer.placement.state import COST, State
from tests.unit.optimizer.actions import Change, Document, Judged, Trial, partition, usage
from tests.unit.optimizer.test_action_oracle import FORCED, HARD, SOFT, forced, mixed

Action = tuple[Change, ...]


def carried_out(trial: Trial, *actions: Action, by_potential: bool = False) -> Record:
    """The actions as a log, recorded from the trial's state, which ends after them."""
    log = empty_log(trial.state.replicas.shape[1], sum(map(len, actions)))
    for a, changes in enumerate(actions):
        for row, replicas, lead in zip(*trial.arrays(changes), strict=True):
            at = int(log.used[1])
            if at < log.first[a] + len(changes):
                log.partition[at], log.replicas[at], log.lead[at] = row, replicas, lead
                log.used[1] += 1
        log.used[0] += 1
        log.first[a + 1] = log.used[1]
    return record(trial.compiled.problem, trial.state, log, by_potential)


def lists(state: State) -> list[list[int]]:
    """What each broker hosts, sorted; `place` must know where each entry stands."""
    slots = state.replicas.shape[1]
    hosted = [state.hosted[b, :n].tolist() for b, n in enumerate(state.hosts)]
    for b, entries in enumerate(hosted):
        for at, entry in enumerate(entries):
            assert state.place[entry // slots, entry % slots] == at
            assert state.replicas[entry // slots, entry % slots] == b
    return [sorted(entries) for entries in hosted]


def assert_as_if_built_there(trial: Trial) -> None:
    right = build_state(trial.compiled.problem, trial.state.replicas, trial.state.lead)
    for name in ("replicas", "lead", "hosts", "load", "units", "topic_count", "score"):
        assert np.array_equal(getattr(trial.state, name), getattr(right, name)), name
    assert lists(trial.state) == lists(right)
    racks = tables.UNIT_WEIGHT * sum(map(trial.oracle_judge.rack_excess, trial.oracle.replicas))
    factor = {tables.NO_RACK_GOAL: 0.0, tables.SOFT_RACK: 1.0, tables.HARD_RACK: tables.HARD_WEIGHT}
    weighed = factor[int(trial.compiled.problem.setting[tables.RACK_GOAL])] * racks
    assert trial.state.score[:, COST].sum() == pytest.approx(trial.potential() - weighed, rel=1e-9, abs=1e-9)


def assert_recorded(found: Record, a: int, trial: Trial, right: Judged) -> None:
    """Action `a` of a record is what the oracle says of it, brokers in ascending order."""
    rows = range(int(found.first[a]), int(found.first[a + 1]))
    brokers = [trial.ids[found.broker[n]] for n in rows]
    assert brokers == sorted(brokers)
    assert found.score[a] == pytest.approx(right.score, abs=1e-9)
    for g, name in enumerate(trial.names):
        assert found.goal_score[a, g] == pytest.approx(right.goals[name], abs=1e-9)
        for scores, table in ((right.before[name], found.before[:]), (right.after[name], found.after)):
            said = {trial.ids[found.broker[n]]: table[n, g] for n in rows if trial.ids[found.broker[n]] in scores}
            assert said == pytest.approx(scores, abs=1e-9)


@pytest.mark.parametrize(
    ("cluster", "goals", "actions"),
    [(mixed(), SOFT, 12), (mixed(), HARD, 9), (forced(), FORCED, 8), (mixed(), SOFT[:-1], 15), (forced(), FORCED[1:], 15)],
    ids=["soft goals", "hard goals", "racks that force their share", "soft goals, no racks", "loads, no racks"],
)
def test_after_every_action_the_state_is_as_if_built_there(
    cluster: tuple[list[Document], list[Document]], goals: list[Document], actions: int
) -> None:
    trial = Trial(*cluster, *goals)
    done = 0
    for turn in range(actions):
        moves = [*trial.moves()]
        single = [(change,) for change in [*moves[7 * turn :], *moves[: 7 * turn]]]
        for action in [*trial.pairs(29), *single] if turn % 3 == 2 else single:
            right = trial.expected(*action)
            if right.allowed and (right.repairs or (right.touches_low and right.gain > 0)):
                break
        else:
            break
        found = carried_out(trial, action, by_potential=True)
        assert_recorded(found, 0, trial, right)
        trial.follow(*action)
        assert_as_if_built_there(trial)
        done += 1
    assert done >= 5


def test_actions_are_recorded_at_their_turn() -> None:
    parts = [partition([1], network_in=amount) for amount in (30.0, 20.0, 10.0, 190.0)]
    trial = Trial([4, 1, 2], [*parts, partition([2], network_in=50.0)], usage("network_in"))  # 250, 50, 0
    first, second = (0, [4], 4), (1, [2], 2)
    right = trial.expected(first)
    trial.follow(first)
    then = trial.expected(second)
    found = carried_out(trial, (first,), (second,))
    assert found.first.tolist() == [0, 2, 4]
    assert found.broker.tolist() == [0, 2, 0, 1]  # rows of 1 and 4, then of 1 and 2
    assert_recorded(found, 0, trial, right)
    assert_recorded(found, 1, trial, then)


def test_an_action_that_is_not_acceptable_is_never_recorded() -> None:
    trial = Trial([1, 2], [partition([1], network_in=10.0), partition([2], network_in=10.0)], usage("network_in"))
    with pytest.raises(BrokenRuleError, match="action 1 "):
        carried_out(trial, ((0, [2], 2),))
