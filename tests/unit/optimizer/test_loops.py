"""Moves that a later round takes back are not in a plan: each would copy data twice for nothing."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.actions import ActionTable
from optimizer.changes import ChangeTable
from optimizer.loops import without_loops
from tests.unit.optimizer.actions import Trial, partition, usage

Step = tuple[int, int, int]  # partition, from broker, to broker


def table_of(*actions: list[Step]) -> ActionTable:
    """Partitions of one replica, which go from broker to broker; the score of an action is its number."""
    steps = [step for action in actions for step in action]
    row, before, after = (np.array([step[i] for step in steps], np.int64) for i in range(3))
    first = np.concatenate([[0], np.cumsum([len(action) for action in actions])]).astype(np.int64)
    count = np.arange(len(actions), dtype=np.float64)
    snapshot = Trial((1, 2, 3), [partition([1], network_in=1.0) for _ in range(9)], usage()).snapshot
    scores = np.zeros((len(actions), 1))
    return ActionTable(
        changes=ChangeTable(snapshot, row, before[:, None], after[:, None], before, after),
        first=first, score=count, repairs=np.zeros(len(actions), np.int64), goal_score=scores,
        first_broker=np.arange(len(actions) + 1), broker=np.arange(len(actions)), score_before=scores, score_after=scores + count[:, None],
        bytes_to_move=count,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("actions", "kept"),
    [
        ([], []),
        ([[(0, 1, 2)], [(1, 1, 2)]], [0, 1]),
        ([[(0, 1, 2)], [(1, 1, 3)], [(1, 3, 1)], [(2, 1, 2)]], [0, 3]),
        ([[(0, 1, 2), (1, 2, 1)], [(1, 1, 2)], [(0, 2, 1)], [(2, 1, 2)]], [3]),
        ([[(0, 1, 2)], [(0, 2, 3)], [(0, 3, 1)]], []),
        ([[(0, 1, 2)], [(1, 1, 2)], [(0, 2, 1)], [(2, 1, 2)]], [0, 1, 2, 3]),
        ([[(5, 1, 2)], [(0, 1, 2)], [(0, 2, 1)], [(1, 1, 2)], [(2, 1, 2)], [(2, 2, 1)], [(1, 2, 1)], [(3, 1, 2)]], [0, 7]),
    ],
    ids=["no actions", "no loop", "one back", "two back", "to the start", "one of two back", "loops in a loop"],
)
def test_what_leads_back_to_an_earlier_placement_is_left_out(actions: list[list[Step]], kept: list[int]) -> None:
    table = table_of(*actions)
    found = without_loops(table)
    assert found.score.tolist() == kept
    assert found.score_after[:, 0].tolist() == kept
    steps = [actions[i] for i in kept]
    rows = np.array([p for action in steps for p, _, _ in action], np.int64)
    assert found.changes.partition.tolist() == rows.tolist()
    assert np.diff(found.first).tolist() == [len(action) for action in steps]
    assert (found is table) == (len(kept) == len(actions))
