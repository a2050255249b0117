"""A cluster as goals judge it where it stands: compiled once, read by detectors and by the service's view of how goals stand.

Pure; nothing is planned here.
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.capacity import with_capacity
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.placement.state import State
from optimizer.problem import Compiled


@dataclass(frozen=True, eq=False)
class Judgement:
    """`snapshot` has the capacities of the goals' calibration; `state` has loads, misplaced replicas and scores of its brokers."""

    snapshot: Snapshot
    goals: GoalSet
    compiled: Compiled
    state: State


def judge(snapshot: Snapshot, goals: GoalSet) -> Judgement:
    """Every goal, exactly as a plan judges it. O(replicas)."""
    snapshot = with_capacity(snapshot, goals)
    compiled = compile_problem(snapshot, goals, PlanOptions())
    return Judgement(snapshot, goals, compiled, build_state(compiled.problem, compiled.replicas, compiled.lead))
