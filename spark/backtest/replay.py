"""Replay: a stretch of history goes by as snapshots, the real detector and planner look at them, and what they plan is applied.

The placement comes from history once, at the start; from then on only plans change it, while the loads of the partitions follow
history window by window. The pure core of the backtest: `spark.backtest.tasks` calls it in Spark tasks, tests call it directly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from cluster_model.snapshot import IntArray, Snapshot
from goals.model import GoalSet
from optimizer.detectors import agrees, detect, policy_of
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from spark.backtest.configuration import Configuration
from spark.backtest.copying import copying
from spark.backtest.judge import Tally
from spark.backtest.outcome import Outcome
from spark.backtest.stretch import Stretch

DAY = 86_400.0
RESTARTS = 1  # seeds of a replayed plan; docs/benchmarks.md, *Speed of replays*, has what more change
Told = Callable[[int, Plan], None]
"""Told of every plan that is carried out: window, plan."""


@dataclass
class Placement:
    """Who hosts and leads what now, and when replicas left brokers. Arrays of broker rows, written to."""

    replicas: IntArray
    leader: IntArray
    left: dict[tuple[int, int], float] = field(default_factory=dict)  # partition row, broker row -> when
    moved_back: int = 0

    def apply(self, rows: IntArray, before: Snapshot, after: Snapshot, now: float) -> None:
        """Go from one snapshot's placement to another's; `rows` are the partitions in them, `now` is in seconds."""
        for n in np.flatnonzero((after.replicas != before.replicas).any(axis=1)).tolist():
            p = int(rows[n])
            old, new = set(before.replicas[n].tolist()) - {-1}, set(after.replicas[n].tolist()) - {-1}
            self.moved_back += sum(now - self.left.get((p, broker), -np.inf) <= DAY for broker in new - old)
            self.left.update({(p, broker): now for broker in old - new})
        self.replicas[rows], self.leader[rows] = after.replicas, after.leader


def replay(
    stretch: Stretch,
    goals: GoalSet,
    reference: GoalSet,
    configuration: Configuration,
    *,
    begin: int | None = None,
    phase: float = 0.0,
    options: PlanOptions | None = None,
    told: Told | None = None,
) -> Outcome:
    """What `configuration`, put on `goals`, would have done to a stretch of history.

    Parameters
    ----------
    reference
        Whose bounds are the band that is scored, so that configurations can be compared.
    begin
        Window of the first look, from which on everything is scored; None: as soon as one horizon is known. Configurations are
        compared from the same window on, so where horizons differ it is the longest.
    phase
        Share of the cadence between the first look and the second; 0: all of it. What comes of rare looks depends on the time of day
        and on chance; the mean over several phases says more.
    options
        Seed and budgets of each plan.

    Notes
    -----
    Copies take their time at the stretch's throttle and are load on both brokers; the placement is the new one when they are all there,
    and no look comes before that. Looks happen at the start of windows, with what was measured before them. As in the service, nothing is
    planned while the detector does not fire, and a plan that the detector is not better off with is not carried out. Of a plan that the
    end of the stretch cuts off, the bytes count that were copied. Deterministic. O(looks) snapshots, plus windows x replicas.
    """
    options = options or PlanOptions(restarts=RESTARTS)
    if configuration.max_moves is not None:
        options = replace(options, max_moves=configuration.max_moves)
    wanted = configuration.applied(goals)
    policy, memory = policy_of(wanted), None
    back = max(1, round(configuration.horizon / stretch.window))
    step = max(1, round(configuration.cadence / stretch.window))
    placement = Placement(stretch.replicas.copy(), stretch.replicas[:, 0].copy())
    tally = Tally(stretch, reference)
    done = Outcome()
    since = first = min(back if begin is None else begin, stretch.windows)
    second = first + (round(phase * step) or step)
    looks = () if configuration.mode == "never" else (first, *range(second, stretch.windows, step))
    ahead = back if configuration.mode == "hindsight" else 0
    for window in looks:
        if window < since:
            continue  # the plan before is still being carried out
        seen = min(window + ahead, stretch.windows)
        snapshot, rows = stretch.snapshot(seen, back, placement.replicas, placement.leader)
        if not len(rows):
            continue
        looked = detect(policy, snapshot, wanted, memory)
        before, memory = memory, looked.memory
        done = replace(done, looks=done.looks + 1, fired=done.fired + looked.fired)
        if not looked.fired:
            continue
        made = plan(snapshot, wanted, options)
        if not made.summary.actions:
            continue
        after = snapshot.with_placement(*placed_by(snapshot, made))
        if not agrees(policy, looked, detect(policy, after, wanted, before)):
            continue
        tally.add(since, window, placement.replicas, placement.leader)
        copies = copying(snapshot, after, stretch.throttle)
        whole = copies.windows(stretch.window)
        since = min(window + whole, stretch.windows)
        tally.add(window, since, placement.replicas, placement.leader, copies.rates(stretch.window))
        copied = made.summary.bytes_to_move * ((since - window) / whole if whole else 1.0)
        tally.add_plan(window, copied, made.summary.replica_moves)
        placement.apply(rows, snapshot, after, stretch.start + since * stretch.window)
        memory = memory.acted()
        done = _counted(done, made, copied, (since - window) * stretch.window / 3600.0)
        if told is not None:
            told(window, made)
    tally.add(since, stretch.windows, placement.replicas, placement.leader)
    return replace(done, moved_back=placement.moved_back) + tally.outcome()


def placed_by(snapshot: Snapshot, made: Plan) -> tuple[IntArray, IntArray]:
    """Replica lists and leaders (broker rows) of `snapshot` as the plan leaves them. O(replicas + proposals)."""
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    rows = snapshot.row_of_broker
    for change in made.proposals:
        p = snapshot.row_of_partition(change.topic, change.partition)
        hosts = [rows[b] for b in change.replicas_after]
        replicas[p] = -1
        replicas[p, : len(hosts)] = hosts
        leader[p] = -1 if change.leader_after is None else rows[change.leader_after]
    return replicas, leader


def _counted(done: Outcome, made: Plan, copied: float, hours: float) -> Outcome:
    sums = made.summary
    return replace(
        done,
        plans=done.plans + 1,
        bytes_moved=done.bytes_moved + copied,
        copying_hours=done.copying_hours + hours,
        actions=done.actions + sums.actions,
        replica_moves=done.replica_moves + sums.replica_moves,
        leadership_changes=done.leadership_changes + sums.leadership_changes,
    )
