"""How fast the service plans again after a small change: with the state of the last plan, and from scratch.

``python -m benchmarks.incremental [--size 1000x1M] [--variant topics] [--repeat 3] [--draws N] [--json FILE]``

The cluster is level and everything on it is measured again in the rows ``all loads``. With `--draws` there are N times as many hot rows:
other partitions, and topics of ordinary size drawn from all instead of the busiest. CPU milliseconds of `plan()` alone, the least of
some repetitions (each after a plan for the level cluster), compiled kernels. Every plan is compared with the one from scratch, byte for
byte; exit code 1 where one differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.measure import surroundings
from cluster_model.snapshot import BrokerState, Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.detectors import detect, policy_of
from optimizer.judgement import judge
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.report import to_json
from optimizer.search_state import SearchState
from tests.clusters.goals import goals_text
from tests.clusters.level import heated, level_cluster
from tests.clusters.synthetic import SIZES
from trimtab.service.standing import stand
from trimtab.warmup import warm_up

LEAST_PARTITIONS, FEW_PARTITIONS = 100, 500  # of a topic of ordinary size
NOISE = 0.02  # from one measurement of a partition to the next


@dataclass(frozen=True)
class Row:
    """One change. Milliseconds are CPU; `kept_mb` is what the state holds, without the snapshot."""

    change: str
    partitions: int
    out: int  # brokers outside their range after the change
    with_state_ms: float
    from_scratch_ms: float
    actions: int
    same: bool
    kept_mb: float


def some(snapshot: Snapshot, draw: int = 0) -> np.ndarray:
    return np.random.default_rng(draw).choice(snapshot.partition_count, 100, replace=False)


def any_topic(snapshot: Snapshot, draw: int) -> np.ndarray:
    """Partitions of a topic of ordinary size."""
    count = np.bincount(snapshot.partition_topic)
    ordinary = np.flatnonzero((count >= LEAST_PARTITIONS) & (count <= FEW_PARTITIONS))
    return np.flatnonzero(snapshot.partition_topic == np.random.default_rng(draw).choice(ordinary))


def busiest_topic(snapshot: Snapshot, most: int) -> np.ndarray:
    """Partitions of the topic with most traffic among those of at most `most` partitions."""
    count = np.bincount(snapshot.partition_topic)
    traffic = np.bincount(snapshot.partition_topic, weights=snapshot.leader_load["network_in"])
    return np.flatnonzero(snapshot.partition_topic == np.argmax(np.where(count <= most, traffic, -1.0)))


def without_broker(snapshot: Snapshot, broker: int) -> Snapshot:
    """Broker row `broker` is dead, and others lead what it led."""
    states, leader = snapshot.broker_states.copy(), snapshot.leader.copy()
    states[broker] = BrokerState.DEAD
    rows = np.flatnonzero(leader == broker)
    lists = snapshot.replicas[rows]
    leader[rows] = np.where(lists[:, 0] == broker, lists[:, 1], lists[:, 0])
    return replace(snapshot, broker_states=states, leader=leader)


def measured_again(snapshot: Snapshot) -> Snapshot:
    rows = np.arange(snapshot.partition_count)
    return heated(snapshot, rows, np.random.default_rng(0).normal(1.0, NOISE, len(rows)).clip(0.5))


CHANGES: dict[str, Callable[[Snapshot], Snapshot]] = {
    "nothing": replace,
    "100 partitions 3 x": lambda s: heated(s, some(s), 3.0),
    "100 partitions 10 x": lambda s: heated(s, some(s), 10.0),
    "a topic 3 x": lambda s: heated(s, busiest_topic(s, FEW_PARTITIONS), 3.0),
    "a topic 10 x": lambda s: heated(s, busiest_topic(s, FEW_PARTITIONS), 10.0),
    "one broker lost": lambda s: without_broker(s, 17),
    "all loads 2%": measured_again,
    "all loads 2%, one broker lost": lambda s: without_broker(measured_again(s), 17),
}


def drawn(draws: int) -> dict[str, Callable[[Snapshot], Snapshot]]:
    """More hot rows."""
    rows: dict[str, Callable[[Snapshot], Snapshot]] = {}
    for draw in range(1, draws + 1):
        rows[f"100 partitions 10 x, draw {draw}"] = lambda s, draw=draw: heated(s, some(s, draw), 10.0)  # type: ignore[misc]
    for draw in range(1, draws + 1):
        rows[f"any topic 10 x, draw {draw}"] = lambda s, draw=draw: heated(s, any_topic(s, draw), 10.0)  # type: ignore[misc]
    return rows


def timed(make: Callable[[], Plan]) -> tuple[Plan, float]:
    started = time.process_time()
    made = make()
    return made, 1e3 * (time.process_time() - started)


def row_of(name: str, change: Callable[[Snapshot], Snapshot], level: Snapshot, goals: GoalSet, repeat: int) -> Row:
    state = SearchState()
    spent, scratch, same = [], [], True
    for _ in range(repeat):
        plan(replace(level), goals, state=state)
        changed = change(level)
        made, ms = timed(lambda changed=changed: plan(changed, goals, state=state))  # type: ignore[misc]
        spent.append(ms)
        anew, ms = timed(lambda changed=changed: plan(replace(changed), goals))  # type: ignore[misc]
        scratch.append(ms)
        same = same and to_json(made) == to_json(anew)
    kept = state.nbytes / 1e6
    rows = (changed.leader != level.leader) | (changed.leader_load["network_in"] != level.leader_load["network_in"])
    out = sum(min(b.scores_before.values(), default=1.0) < 1.0 for b in made.brokers)
    return Row(name, int(rows.sum()), out, round(min(spent), 1), round(min(scratch), 1), made.summary.actions, same, round(kept, 1))


def look_ms(level: Snapshot, goals: GoalSet, repeat: int) -> float:
    """CPU milliseconds of what the service does between plans, of a cluster measured again: goals, brokers and the detector."""

    def look(snapshot: Snapshot) -> None:
        found = judge(snapshot, goals)
        stand(found)
        detect(policy_of(goals), snapshot, goals, None, found)

    spent = []
    for _ in range(repeat + 1):
        snapshot = measured_again(level)
        started = time.process_time()
        look(snapshot)
        spent.append(1e3 * (time.process_time() - started))
    return round(min(spent), 1)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", choices=tuple(SIZES), default="1000x1M")
    parser.add_argument("--variant", choices=("even", "topics", "topics-wide"), default="even")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--draws", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(arguments)
    warm_up()
    goals = parse_goals(goals_text(chosen.variant, 0.10), "benchmark")
    level = level_cluster(chosen.size, chosen.variant)
    heads = f"{'change':<32} {'partitions':>10} {'out':>4} {'with, ms':>9} {'from scratch, ms':>17}"
    print(f"{heads} {'actions':>8} {'same':>5} {'kept MB':>8}")
    rows = []
    for name, change in (CHANGES | drawn(chosen.draws)).items():
        row = row_of(name, change, level, goals, chosen.repeat)
        rows.append(row)
        print(
            f"{row.change:<32} {row.partitions:>10,} {row.out:>4,} {row.with_state_ms:>9.1f} {row.from_scratch_ms:>17.1f} {row.actions:>8,}"
            f" {row.same!s:>5} {row.kept_mb:>8.1f}", flush=True,
        )  # fmt: skip
    look = look_ms(level, goals, chosen.repeat)
    print(f"a look at goals and brokers, all loads 2%: {look} ms")
    if chosen.json is not None:
        found = {**surroundings(), "rows": [asdict(row) for row in rows], "look_ms": look}
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(row.same for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
