"""The planner beside Cruise Control's own optimizer: the same clusters, its 16 default goals, its measured figures.

``python -m benchmarks.cruise_control [--sizes 50k,125k] [--distributions exponential,uniform] [--acceptance score,potential]
[--within] [--met] [--no-topics] [--json FILE]``

Its figures were measured once, on 2 cores like ours, at commit dadba67e (`PUBLISHED`); they are not measured again here. Our plan is
made under `cruise_control_goals.yaml` and then judged twice: by our goals, and by its own definition of each of its 16 goals, which
`violated` restates. Its balancedness is a function of the violated goals alone: with their number, and with those that it is known to
have left in every run, its figure says which they were (`goals_it_left`).

What it calls replica movements is a count of partitions: its summary (``OptimizerResult.getMovementStats``) adds one for each proposal that
adds or removes a replica, however many, and one to the leadership movements for each other. Its bytes are those of all replicas. So
partitions are set beside partitions here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from benchmarks.apart import apart
from benchmarks.measure import Job, Row, placement_after, row_of, surroundings, timed
from benchmarks.planner import listed
from cluster_model.snapshot import Snapshot
from optimizer.options import Acceptance
from optimizer.plan import Plan
from tests.clusters.cruise_control import GOALS_FILE, SIZES, Distribution, cruise_control_cluster
from trimtab.warmup import warm_up

MODULE = "benchmarks.cruise_control"

# Its 16 default goals by priority, the first seven hard.
GOALS = (
    "RackAware", "MinTopicLeadersPerBroker", "ReplicaCapacity", "DiskCapacity", "NetworkInboundCapacity",
    "NetworkOutboundCapacity", "CpuCapacity", "ReplicaDistribution", "PotentialNwOut", "DiskUsageDistribution",
    "NetworkInboundUsageDistribution", "NetworkOutboundUsageDistribution", "CpuUsageDistribution",
    "TopicReplicaDistribution", "LeaderReplicaDistribution", "LeaderBytesInDistribution",
)  # fmt: skip
HARD_GOALS = 7
PRIORITY, STRICTNESS = 1.1, 1.5  # weights of its balancedness
BAND = 0.10 * 0.9  # threshold less one, with its margin
TOPIC_BAND, TOPIC_LEAST, TOPIC_MOST = 2.0 * 0.9, 2, 40
LEADER_BYTES = 1.10
MOST_REPLICAS = 10_000
CAPACITY_LIMITS = {"disk": 0.8, "network_in": 0.8, "network_out": 0.8, "cpu": 0.7}


@dataclass(frozen=True)
class Published:
    """What it took and gave in fast mode: CPU seconds (None where only wall time is known), counts of partitions, TB, goals left."""

    cpu_s: float | None
    wall_s: float
    moved: int  # partitions with a replica elsewhere
    reordered: int  # others with another leader or order
    terabytes: float
    balancedness_before: float
    balancedness: float
    left: int


PUBLISHED: dict[tuple[str, str], Published] = {
    ("50k", "exponential"): Published(4.7, 6.6, 10_446, 376, 1.27, 38.8, 90.2, 4),
    ("50k", "uniform"): Published(None, 12.4, 3_097, 1_221, 0.31, 43.0, 92.7, 3),
    ("125k", "exponential"): Published(25.7, 48.5, 27_017, 564, 3.55, 38.8, 80.9, 6),
    ("125k", "uniform"): Published(12.3, 24.6, 11_706, 2_204, 1.23, 38.8, 81.5, 6),
    ("250k", "exponential"): Published(67.3, 102.1, 48_162, 1_239, 6.40, 30.6, 84.3, 5),
    ("250k", "uniform"): Published(38.6, 92.2, 16_437, 5_232, 1.76, 38.8, 84.3, 5),
    ("500k", "exponential"): Published(214.6, 280.0, 98_851, 2_656, 13.4, 38.8, 84.3, 5),
    ("500k", "uniform"): Published(86.1, 154.9, 19_854, 11_239, 2.10, 38.8, 81.5, 6),
    ("1M", "uniform"): Published(233.8, 364.4, 53_526, 10_793, 5.57, 38.8, 86.9, 4),
}  # the best of its runs where there were several
ALWAYS_LEFT = ("LeaderReplicaDistribution", "LeaderBytesInDistribution")  # and with skewed replicas this one, too:
LEFT_WHERE_SKEWED = "TopicReplicaDistribution"


@dataclass(frozen=True)
class Compared:
    """Our plan for one of its clusters, and which of its own goals are violated before and after."""

    row: Row
    max_partitions: int | None
    moved: int  # partitions, as it counts them
    reordered: int
    rack_excess: int
    violated_before: tuple[str, ...]
    violated: tuple[str, ...]
    goals_left: dict[str, str]  # ours that are not satisfied -> what the plan says


def compare(job: Job) -> Compared:
    result, timing = timed(job.snapshot, job.goals, job.options)
    moved, reordered = movements(result)
    return Compared(
        row=row_of(job, result, timing),
        max_partitions=job.max_partitions,
        moved=moved,
        reordered=reordered,
        rack_excess=rack_excess(job.snapshot),
        violated_before=violated(job.snapshot),
        violated=violated(placement_after(job.snapshot, result)),
        goals_left=goals_left(result),
    )


def movements(result: Plan) -> tuple[int, int]:
    """Partitions of which a replica moves, and those of which only the leader or the order changes: what its summary counts."""
    moved = sum(bool(change.added) for change in result.proposals)
    return moved, len(result.proposals) - moved


def goals_left(result: Plan) -> dict[str, str]:
    return {g.name: f"{g.status}: {g.explanation}" for g in result.goals if g.status != "satisfied"}


# --- its goals --------------------------------------------------------------------------------------------------------


def violated(snapshot: Snapshot) -> tuple[str, ...]:
    """Those of its 16 goals that a placement violates, by its own bounds; all brokers alive, no topic with a minimum of leaders."""
    load = {x: snapshot.broker_load(x) for x in (*CAPACITY_LIMITS, "replicas", "leaders")}
    checks = {
        "RackAware": rack_excess(snapshot) > 0,
        "ReplicaCapacity": bool((load["replicas"] > MOST_REPLICAS).any()),
        "ReplicaDistribution": counts_outside(load["replicas"]),
        "PotentialNwOut": over_capacity(snapshot, "potential_network_out", CAPACITY_LIMITS["network_out"]),
        "TopicReplicaDistribution": topics_outside(snapshot),
        "LeaderReplicaDistribution": counts_outside(load["leaders"]),
        "LeaderBytesInDistribution": leader_bytes_over(snapshot),
    }
    for resource, name in {"disk": "Disk", "network_in": "NetworkInbound", "network_out": "NetworkOutbound", "cpu": "Cpu"}.items():
        checks[f"{name}Capacity"] = over_capacity(snapshot, resource, CAPACITY_LIMITS[resource])
        share = load[resource] / snapshot.capacity[resource]
        mean = load[resource].sum() / snapshot.capacity[resource].sum()
        checks[f"{name}UsageDistribution"] = bool((np.abs(share - mean) > BAND * mean * (1 + 1e-9)).any())
    return tuple(name for name in GOALS if checks.get(name, False))


def rack_excess(snapshot: Snapshot) -> int:
    """Replicas that share a rack with an earlier one of their partition: moves that no plan can avoid."""
    rack = np.unique(np.array(snapshot.racks), return_inverse=True)[1]
    present = snapshot.replicas >= 0
    hosts = np.where(present, rack[np.maximum(snapshot.replicas, 0)], -1 - np.arange(snapshot.replicas.shape[1]))
    ordered = np.sort(hosts, axis=1)
    return int((ordered[:, 1:] == ordered[:, :-1]).sum())


def counts_outside(counts: npt.NDArray[np.float64]) -> bool:
    mean = counts.mean()
    return bool(((counts > np.ceil(mean * (1 + BAND))) | (counts < np.floor(mean * (1 - BAND)))).any())


def over_capacity(snapshot: Snapshot, resource: str, limit: float) -> bool:
    return bool((snapshot.broker_load(resource) > limit * snapshot.capacity[resource] * (1 + 1e-9)).any())


def leader_bytes_over(snapshot: Snapshot) -> bool:
    held = snapshot.broker_load("leader_network_in")
    return bool((held > LEADER_BYTES * held.mean() * (1 + 1e-9)).any())


def topics_outside(snapshot: Snapshot) -> bool:
    """Whether a broker holds more or fewer replicas of a topic than its clamped band allows."""
    brokers, topics = snapshot.broker_count, len(snapshot.topics)
    present = snapshot.replicas >= 0
    row = np.broadcast_to(snapshot.partition_topic[:, None], present.shape)[present].astype(np.int64)
    held = np.bincount(row * brokers + snapshot.replicas[present], minlength=topics * brokers).reshape(topics, brokers)
    mean = held.sum(axis=1) / brokers
    top = np.clip(np.ceil(mean * (1 + TOPIC_BAND)), np.ceil(mean) + TOPIC_LEAST, np.ceil(mean) + TOPIC_MOST)
    low = np.floor(mean * max(0.0, 1 - TOPIC_BAND))
    low = np.maximum(np.clip(low, np.floor(mean) - TOPIC_MOST, np.floor(mean) - TOPIC_LEAST), 0.0)
    return bool(((held > top[:, None]) | (held < low[:, None])).any())


def balancedness(left: tuple[str, ...]) -> float:
    """Its score of a plan, 0 to 100: what the violated goals cost, by priority and strictness, taken off 100."""
    weight = {
        name: PRIORITY ** (len(GOALS) - i) * (STRICTNESS if i < HARD_GOALS else 1.0) for i, name in enumerate(GOALS)
    }
    return 100.0 - 100.0 * sum(weight[name] for name in left) / sum(weight.values())


# --- command line -----------------------------------------------------------------------------------------------------


def goals_text(without: Collection[str] = ()) -> str:
    """Our goals file without the lines of some of its goals; it has one for each, in its order, but for the one that is idle."""
    names = iter(name for name in GOALS if name != "MinTopicLeadersPerBroker")
    lines = GOALS_FILE.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("  - {") or next(names) not in without)


def goals_it_left(size: str, distribution: str) -> tuple[str, ...]:
    """Those that its plan leaves violated, in its order: the only ones of that number that make up its balancedness.

    Raises
    ------
    LookupError
        More than one choice does, or none.
    """
    theirs = PUBLISHED[size, distribution]
    known = {*ALWAYS_LEFT, LEFT_WHERE_SKEWED} if distribution == "exponential" else set(ALWAYS_LEFT)
    fitting = [
        left
        for left in combinations(GOALS[HARD_GOALS:], theirs.left)
        if known <= set(left) and round(balancedness(left), 1) == theirs.balancedness
    ]
    if len(fitting) != 1:
        raise LookupError(f"{len(fitting)} choices of {theirs.left} goals make {theirs.balancedness}")
    return fitting[0]


def jobs(chosen: argparse.Namespace) -> Iterator[Job]:
    for size in chosen.sizes:
        for distribution in chosen.distributions:
            snapshot = cruise_control_cluster(*SIZES[size], cast(Distribution, distribution))
            published = (size, distribution) in PUBLISHED
            budgets: list[int | None] = [None]
            if chosen.within and published:
                budgets.append(PUBLISHED[size, distribution].moved + PUBLISHED[size, distribution].reordered)
            asked: dict[str, tuple[str, ...]] = {"all its goals": ("TopicReplicaDistribution",) if chosen.no_topics else ()}
            if chosen.met and published:
                asked["the goals that it met"] = goals_it_left(size, distribution)
            for acceptance, budget, (variant, without) in product(chosen.acceptance, budgets, asked.items()):
                yield Job(
                    size=size, scenario=distribution, variant=variant, seed=0, band=BAND,
                    acceptance=cast(Acceptance, acceptance), threads=1, snapshot=snapshot,
                    goals=goals_text(without), max_partitions=budget,
                )  # fmt: skip


def story(found: Compared) -> list[str]:
    """Lines that set our plan beside its figures."""
    row, theirs = found.row, PUBLISHED.get((found.row.size, found.row.scenario))
    within = "" if found.max_partitions is None else f", at most {found.max_partitions:,} partitions"
    cluster = f"{row.size} {row.scenario}, {row.brokers} brokers, {row.replicas:,} replicas"
    lines = [f"{cluster}, {row.variant}, acceptance {row.acceptance}{within}"]
    form = "  {:<15}{:>9}{:>10}{:>12}{:>11}{:>9}{:>9}{:>8}{:>14}"
    lines.append(form.format("", "CPU s", "wall s", "partitions", "reordered", "moves", "TB", "goals", "balancedness"))
    if theirs is not None:
        cpu = "-" if theirs.cpu_s is None else f"{theirs.cpu_s:.1f}"
        lines.append(form.format(
            "Cruise Control", cpu, f"{theirs.wall_s:.1f}", f"{theirs.moved:,}", f"{theirs.reordered:,}",
            "-", f"{theirs.terabytes:.2f}", theirs.left, f"{theirs.balancedness_before} > {theirs.balancedness}",
        ))  # fmt: skip
    scores = f"{balancedness(found.violated_before):.1f} > {balancedness(found.violated):.1f}"
    lines.append(form.format(
        "Trimtab", f"{row.cpu_s:.2f}", f"{row.wall_s:.2f}", f"{found.moved:,}", f"{found.reordered:,}",
        f"{row.moves:,}", f"{row.bytes_moved / 1e12:.2f}", len(found.violated), scores,
    ))  # fmt: skip
    lines.append(form.format(
        "lower bound", "", "", "", "", f"{max(row.moves_bound, found.rack_excess):,}", f"{row.bytes_bound / 1e12:.2f}", "", ""
    ))  # fmt: skip
    if theirs is not None and theirs.cpu_s is not None:
        lines.append(f"  {theirs.cpu_s / max(row.cpu_s, 1e-3):.1f} times less CPU")
    lines.append(f"  its goals violated: {', '.join(found.violated) or 'none'}; brokers left out {row.explained} explained, "
                 f"{row.unexplained} not; hard violations {row.hard_violations}; peak {row.peak_mb:,.0f} MB")  # fmt: skip
    lines += [f"  {name}: {text}" for name, text in found.goals_left.items()]
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    distributions = ("exponential", "uniform", "linear")
    add("--sizes", type=listed(tuple(SIZES)), default=["50k", "125k"], metavar="A,B")
    add("--distributions", type=listed(distributions), default=["exponential", "uniform"], metavar="A,B")
    add("--acceptance", type=listed(("score", "potential")), default=["score", "potential"], metavar="A,B")
    add("--within", action="store_true", help="also with a budget of as many partitions as it changed")
    add("--met", action="store_true", help="also with only the goals that it met: moves and bytes at its own balance")
    add("--no-topics", action="store_true", help="without our goal on single topics; its goal is judged all the same")
    add("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(arguments)
    warm_up()
    rows = []
    for job in jobs(chosen):
        found: Compared = apart(MODULE, "compare", job)
        print("\n".join(story(found)) + "\n", flush=True)
        theirs = PUBLISHED.get((job.size, job.scenario))
        rows.append({**asdict(found), "cruise_control": asdict(theirs) if theirs else None})
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({**surroundings(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
