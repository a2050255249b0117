"""Every policy through the same day: how soon, how cheaply and how steadily each keeps a cluster level.

    python -m benchmarks.arena
    python -m benchmarks.arena --policies default,wix-minimal --scenarios scale-out --hours 6 --seed 8

A day of 24 simulated hours in steps of half an hour. In each step loads are as the scenario has them, the policy's detector is asked
(with its memory, so that repeated checks count), and as much of the plan is carried out as the copying of half an hour and the policy's
moves per hour allow. Every policy is judged by the goals of preset `default`, whatever its own detector says; a lost broker that still has
replicas is outside, too. `default` is the search
with these goals, `automq` the search with those of preset `automq`; the others have the goals of `default` and plan by their own parts;
`nothing` moves nothing. The last columns are what `default` makes of no more bytes than the policy copied in its day.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from goals.policy_presets import POLICY_PRESETS
from optimizer.detectors import Memory, detect, policy_of
from optimizer.judgement import judge
from optimizer.options import PlanOptions
from optimizer.plan import Action
from optimizer.planner import plan
from tests.clusters.synthetic import cluster

BROKERS, REPLICAS = 12, 720
STEP = 0.5  # hours
COPIED = 0.02  # of all data, in a step
LOSS_AT, LOST = 2.0, 3  # hours, broker row
HOT_FOR = 4  # hours, until other topics are hot
DEFAULT, AUTOMQ, NOTHING = "default", "automq", "nothing"

Loads = Callable[[Snapshot, float], Snapshot]


@dataclass
class Score:
    """What a policy did in a day. Hour of the first step (of a loss: after it) with all brokers within range; broker-hours outside."""

    level_after: float | None = None
    outside: float = 0.0
    moves: int = 0
    bytes: float = 0.0
    returns: int = 0  # replicas that came back to a broker that they had left
    left: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    by_step: list[int] = field(default_factory=list)  # moves


def same(snapshot: Snapshot, hour: float) -> Snapshot:
    """Loads stay as they are."""
    return snapshot


def lost(snapshot: Snapshot, hour: float) -> Snapshot:
    """One broker is dead from an hour on."""
    states = snapshot.broker_states.copy()
    states[LOST] = BrokerState.DEAD if hour >= LOSS_AT else BrokerState.ACTIVE
    return replace(snapshot, broker_states=states)


def drifting(base: Snapshot, seed: int) -> Loads:
    """A fifth of the topics is three times as busy for some hours, then another fifth; disks stay."""

    def at(snapshot: Snapshot, hour: float) -> Snapshot:
        hot = np.random.default_rng([seed, int(hour // HOT_FOR)]).random(len(base.topics)) < 0.2
        factor = np.where(hot, 3.0, 1.0)[base.partition_topic]

        def scaled(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {name: values if name == "disk" else values * factor for name, values in table.items()}

        return replace(snapshot, leader_load=scaled(dict(base.leader_load)), follower_load=scaled(dict(base.follower_load)))

    return at


def scenario(name: str, seed: int) -> tuple[Snapshot, Loads]:
    """The cluster at the start of a day, and what a step makes of it."""
    if name == "scale-out":
        return cluster(BROKERS, REPLICAS, "a", seed), same
    if name == "loss":
        return cluster(BROKERS, REPLICAS, "d", seed), lost
    if name == "drift":
        base = cluster(BROKERS, REPLICAS, "b", seed)
        return base, drifting(base, seed)
    if name == "hardware":
        return cluster(BROKERS, REPLICAS, "b", seed, "capacities"), same
    raise KeyError(name)


SCENARIOS = ("scale-out", "loss", "drift", "hardware")


def goals_of(policy: str) -> GoalSet:
    """Preset `default`, with a policy in place of the search where one is named; `automq` has goals of its own."""
    if policy == AUTOMQ:
        return parse_goals("version: 1\npreset: automq\n", policy)
    chosen = "" if policy in (DEFAULT, NOTHING) else f"policy: {{preset: {policy}}}\n"
    return parse_goals(f"version: 1\npreset: default\n{chosen}", policy)


def a_day(policy: str, name: str, seed: int, hours: float = 24.0, most_bytes: float | None = None) -> Score:
    """One policy through one scenario, with at most so many bytes copied in all."""
    snapshot, loads = scenario(name, seed)
    goals, judged = goals_of(policy), goals_of(DEFAULT)
    score, memory, idle = Score(), Memory(), b""
    room = COPIED * float((snapshot.vectors("disk")[0] * snapshot.replication_factor).sum())
    for step in range(round(hours / STEP)):
        hour = step * STEP
        snapshot = replace(loads(snapshot, hour), taken_at=f"2026-01-01T{int(hour):02d}:{int(hour % 1 * 60):02d}:00Z")
        found = detect(goals, snapshot, goals, memory)
        memory = found.memory
        before, standing_still = score.moves, _looks(snapshot)
        changed = standing_still != idle  # else the plan is the same, an empty one
        if (found.fired or found.unrepaired) and changed and policy != NOTHING:
            budget = None if most_bytes is None else max(int(most_bytes - score.bytes), 0)
            options = PlanOptions(max_moves=None if found.unrepaired else _left(goals, score), max_bytes=budget)
            made = _part(plan(snapshot, goals, options).actions, room)
            if made:
                snapshot = _carried_out(snapshot, made, score)
                memory = memory.acted()
            elif _left(goals, score) != 0:
                idle = standing_still
        score.by_step.append(score.moves - before)
        standing = judge(snapshot, judged)
        active = snapshot.broker_states == BrokerState.ACTIVE
        outside = int((standing.state.score[active][:, : len(standing.compiled.goals)] < 1.0).any(axis=1).sum())
        outside += int(((snapshot.broker_states == BrokerState.DEAD) & (snapshot.broker_load("replicas") > 0)).sum())
        score.outside += outside * STEP
        if outside == 0 and score.level_after is None and not (name == "loss" and hour < LOSS_AT):
            score.level_after = hour + STEP
    return score


def _looks(snapshot: Snapshot) -> bytes:
    """Everything that a plan depends on, but for the time."""
    parts = (snapshot.replicas, snapshot.leader, snapshot.broker_states, *snapshot.leader_load.values())
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def _left(goals: GoalSet, score: Score) -> int | None:
    """Moves that the policy allows in this step, by what it made in the last hour; None for any number."""
    guards = policy_of(goals).guards
    if guards is None or guards.moves_per_hour is None:
        return None
    recent = sum(score.by_step[-round(1.0 / STEP) + 1 :])
    return max(guards.moves_per_hour - recent, 0)


def _part(actions: Sequence[Action], room: float) -> list[Action]:
    """The first actions that copy no more than `room` bytes; one at least."""
    chosen: list[Action] = []
    used = 0.0
    for action in actions:
        if chosen and used + action.bytes_to_move > room:
            break
        chosen.append(action)
        used += action.bytes_to_move
    return chosen


def _carried_out(snapshot: Snapshot, actions: list[Action], score: Score) -> Snapshot:
    lists, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for action in actions:
        score.bytes += action.bytes_to_move
        for change in action.changes:
            row = snapshot.row_of_partition(change.topic, change.partition)
            after = [snapshot.row_of_broker[b] for b in change.replicas_after]
            lists[row, : len(after)] = after
            leader[row] = -1 if change.leader_after is None else snapshot.row_of_broker[change.leader_after]
            before = score.left.setdefault((change.topic, change.partition), set())
            score.moves += len(change.added)
            score.returns += len(before.intersection(change.added))
            before |= set(change.replicas_before) - set(change.replicas_after)
    return snapshot.with_placement(lists, leader)


HEAD = """
| policy | level after (h) | broker-hours outside | moves | GB | returns | `default` with as many GB: outside | GB | returns |
|---|---|---|---|---|---|---|---|---|"""


def table(name: str, scores: dict[str, tuple[Score, Score]]) -> str:
    """A Markdown table of one scenario: of each policy its own day, and that of `default` with its bytes."""
    lines = [f"\n## {name}\n{HEAD}"]
    for policy, (own, same_bytes) in scores.items():
        level = "never" if own.level_after is None else f"{own.level_after:.1f}"
        beside = f"{same_bytes.outside:.1f} | {same_bytes.bytes / 1e9:,.1f} | {same_bytes.returns}"
        lines.append(f"| {policy} | {level} | {own.outside:.1f} | {own.moves} | {own.bytes / 1e9:,.1f} | {own.returns} | {beside} |")
    return "\n".join(lines)


def beside(policy: str, name: str, seed: int, hours: float) -> tuple[Score, Score]:
    """The day of a policy, and that of `default` with no more bytes."""
    own = a_day(policy, name, seed, hours)
    return own, own if policy == DEFAULT else a_day(DEFAULT, name, seed, hours, own.bytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default=",".join([NOTHING, DEFAULT, *POLICY_PRESETS]))
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seed", type=int, default=7, help="of the clusters and of which topics get hot (default: %(default)s)")
    given = parser.parse_args()
    for option, found, known in (
        ("--policies", given.policies, (NOTHING, DEFAULT, *POLICY_PRESETS)), ("--scenarios", given.scenarios, SCENARIOS),
    ):  # fmt: skip
        if unknown := [name for name in found.split(",") if name not in known]:
            parser.error(f"{option}: expected some of {', '.join(known)}, found {', '.join(map(repr, unknown))}")
    for name in given.scenarios.split(","):
        print(table(name, {policy: beside(policy, name, given.seed, given.hours) for policy in given.policies.split(",")}), flush=True)


if __name__ == "__main__":
    main()
