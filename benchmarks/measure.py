"""One planner run, measured: seconds, memory, and what the plan is worth. Called by `benchmarks.planner` and `cruise_control`.

Seconds are CPU seconds of the process in `plan()`, of the second run, so that nothing is compiled in them; memory is the most the
process ever had, snapshot and interpreter included (run it through `benchmarks.apart`). A broker counts as *reducible* unless the
plan proves why it stays outside its range; where the plan only says that it found nothing, it is *unexplained*. *Forced* hard violations
are those that excluded topics make alone, counted here and not by the planner.
"""

from __future__ import annotations

import os
import platform
import subprocess
import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version

import numpy as np

from benchmarks.apart import ROOT
from benchmarks.loading import peak_bytes
from cluster_model.snapshot import BrokerState, Snapshot
from goals.document import parse_goals
from goals.model import Capacity, GoalSet
from kernels.compiled import COMPILED
from optimizer.options import Acceptance, PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.clusters.goals import is_unexplained


@dataclass(frozen=True)
class Job:
    """One cell of a table. `goals` is the text of a goals file."""

    size: str
    scenario: str
    variant: str
    seed: int
    band: float
    acceptance: Acceptance
    threads: int
    snapshot: Snapshot
    goals: str
    max_moves: int | None = None
    max_partitions: int | None = None

    @property
    def options(self) -> PlanOptions:
        return PlanOptions(
            acceptance=self.acceptance, threads=self.threads, max_moves=self.max_moves, max_partitions=self.max_partitions
        )


@dataclass(frozen=True)
class Row:
    """One measured plan. Shares are 0..1, ratios are over the lower bound, None where that is 0."""

    size: str
    scenario: str
    variant: str
    seed: int
    band: float
    acceptance: str
    threads: int
    brokers: int
    replicas: int
    cpu_s: float
    first_cpu_s: float
    wall_s: float
    peak_mb: float
    loaded_mb: float
    in_band_before: float
    in_band: float
    explained: int
    unexplained: int
    out_by_goal: dict[str, int]  # brokers that score below 1, soft goals
    hard_violations: int
    hard_violations_before: int
    hard_forced: int
    moves: int
    moves_bound: int
    moves_over_bound: float | None
    bytes_moved: int
    bytes_bound: int
    bytes_over_bound: float | None
    leadership_changes: int
    actions: int
    worst_deviation: float
    repeated: bool


@dataclass(frozen=True)
class Timing:
    """Seconds of one plan, MB of its process. `repeated`: a second run gave the same plan id."""

    cpu_s: float
    first_cpu_s: float
    wall_s: float
    peak_mb: float
    loaded_mb: float
    repeated: bool


def measured(job: Job) -> Row:
    result, timing = timed(job.snapshot, job.goals, job.options)
    return row_of(job, result, timing)


def timed(snapshot: Snapshot, goals_text: str, options: PlanOptions) -> tuple[Plan, Timing]:
    """The plan of a second run, and what it took."""
    goals = parse_goals(goals_text, "benchmark")
    loaded = peak_bytes()
    started = time.process_time()
    first_id = plan(snapshot, goals, options).plan_id
    first = time.process_time() - started
    started, clock = time.process_time(), time.perf_counter()
    result = plan(snapshot, goals, options)
    cpu, wall = time.process_time() - started, time.perf_counter() - clock
    return result, Timing(
        cpu_s=round(cpu, 3), first_cpu_s=round(first, 3), wall_s=round(wall, 3),
        peak_mb=round(peak_bytes() / 1e6, 1), loaded_mb=round(loaded / 1e6, 1), repeated=result.plan_id == first_id,
    )  # fmt: skip


def row_of(job: Job, result: Plan, timing: Timing) -> Row:
    eligible = [b for b in result.brokers if b.state == "active"]
    soft = {g.name for g in result.goals if not g.hard and g.status != "skipped"}
    before = sum(all(b.scores_before.get(g, 1.0) >= 1.0 for g in soft) for b in eligible)
    out = [b for b in eligible if any(b.scores_after.get(g, 1.0) < 1.0 for g in soft)]
    unexplained = sum(is_unexplained(b) for b in out)
    explained = len(out) - unexplained
    reducible = len(eligible) - explained
    bound, used = result.lower_bounds, result.summary
    deviations = [g.after.max_deviation for g in result.goals if g.after is not None and g.name in soft]
    return Row(
        size=job.size, scenario=job.scenario, variant=job.variant, seed=job.seed, band=job.band,
        acceptance=job.acceptance, threads=job.threads,
        brokers=job.snapshot.broker_count, replicas=job.snapshot.replica_count,
        cpu_s=timing.cpu_s, first_cpu_s=timing.first_cpu_s, wall_s=timing.wall_s,
        peak_mb=timing.peak_mb, loaded_mb=timing.loaded_mb,
        in_band_before=before / max(len(eligible), 1),
        in_band=(reducible - unexplained) / reducible if reducible else 1.0,
        explained=explained, unexplained=unexplained,
        out_by_goal={g.name: g.after.violations for g in result.goals if g.after and g.name in soft and g.after.violations},
        hard_violations=result.hard_violations_left,
        hard_violations_before=sum(g.before.violations for g in result.goals if g.hard and g.before is not None),
        hard_forced=hard_forced(job.snapshot, parse_goals(job.goals, "benchmark")),
        moves=used.replica_moves, moves_bound=bound.replica_moves,
        moves_over_bound=ratio(used.replica_moves, bound.replica_moves),
        bytes_moved=used.bytes_to_move, bytes_bound=bound.bytes_to_move,
        bytes_over_bound=ratio(used.bytes_to_move, bound.bytes_to_move),
        leadership_changes=used.leadership_changes, actions=used.actions,
        worst_deviation=max((d for d in deviations if d is not None), default=0.0),
        repeated=timing.repeated,
    )  # fmt: skip


def hard_forced(snapshot: Snapshot, goals: GoalSet) -> int:
    """Brokers over a hard capacity by excluded topics alone, summed over goals: no plan can mend them."""
    globs = goals.constraints.exclude_topics
    fixed = np.array([any(fnmatchcase(topic, glob) for glob in globs) for topic in snapshot.topics], dtype=np.bool_)
    held = fixed[snapshot.partition_topic]
    if not held.any():
        return 0
    alone = snapshot.with_placement(
        np.where(held[:, None], snapshot.replicas, -1), np.where(held, snapshot.leader, -1)
    )
    eligible = snapshot.broker_states == BrokerState.ACTIVE
    return sum(
        int((alone.broker_load(g.resource) > g.limit * snapshot.capacity[g.resource])[eligible].sum())
        for g in goals.goals
        if isinstance(g, Capacity) and g.hard and g.resource in snapshot.capacity
    )


def ratio(used: float, bound: float) -> float | None:
    return used / bound if bound > 0 else None


def placement_after(snapshot: Snapshot, result: Plan) -> Snapshot:
    """The snapshot with every proposal carried out."""
    row_of_broker = snapshot.row_of_broker
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for change in result.proposals:
        p = snapshot.row_of_partition(change.topic, change.partition)
        replicas[p, : len(change.replicas_after)] = [row_of_broker[b] for b in change.replicas_after]
        leader[p] = -1 if change.leader_after is None else row_of_broker[change.leader_after]
    return snapshot.with_placement(replicas, leader)


def surroundings() -> dict[str, object]:
    """What a figure must be read with: versions, cores, commit (None outside a git checkout)."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "commit": git.stdout.strip() or None, "python": platform.python_version(), "machine": platform.machine(),
        "cores": os.cpu_count(), "numpy": np.__version__, "numba": version("numba") if COMPILED else None,
    }  # fmt: skip
