"""How far from the best placement the planner ends: against an exact model, on clusters small enough for one.

``python -m benchmarks.gap [--instances 60] [--bands 0.10,0.02] [--acceptance score,potential] [--time-limit 20] [--json FILE]``

For each seeded cluster (3 to 6 brokers, 8 to 24 partitions of RF 2, two or three resources): the planner's worst deviation against the
smallest that a plan of as few bytes can reach, and its bytes against the fewest that reach its worst deviation. Deviations are shares
of the mean, and inside the band there is nothing to gain. Clusters that the model cannot settle within the time limit are counted apart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.exact import Answer, BoolArray, Instance, fewest_bytes, least_deviation
from benchmarks.measure import placement_after, surroundings
from benchmarks.planner import listed, numbers
from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.options import Acceptance, PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.clusters.goals import is_unexplained
from tests.clusters.loads import clipped, followers, rates

Document = dict[str, Any]
RESOURCES = ("network_in", "network_out", "disk")
FACTOR = 2
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Case:
    snapshot: Snapshot
    goals: str
    resources: tuple[str, ...]
    band: float


@dataclass(frozen=True)
class Gap:
    """One cluster: worst deviations (shares of the mean, at least the band) and bytes (shares of all data); None: not settled."""

    seed: int
    brokers: int
    partitions: int
    resources: int
    racked: bool
    band: float
    acceptance: str
    worst_before: float
    worst: float
    least_worst: float | None
    bytes_moved: float
    fewest_bytes: float | None
    unexplained: int


def small_case(seed: int, band: float) -> Case:
    """In turn: one broker empty, random placement, and hot partitions on a placement by turns. Some have racks."""
    r = np.random.default_rng([seed, 417])
    brokers, partitions = int(r.integers(3, 7)), int(r.integers(8, 25))
    racked = brokers >= 5 and bool(r.random() < 0.5)
    rack = np.arange(brokers) % 3 if racked else np.arange(brokers)
    resources = RESOURCES[: int(r.integers(2, 4))]
    open_brokers = np.arange(brokers - 1) if seed % 3 == 0 and brokers > 3 else np.arange(brokers)
    homes = []
    for p in range(partitions):
        first = int(open_brokers[p % len(open_brokers)] if seed % 3 == 2 else r.choice(open_brokers))
        homes.append([first, int(r.choice(open_brokers[rack[open_brokers] != rack[first]]))])
    rate = 2e5 * r.lognormal(0.0, 1.0, partitions)
    if seed % 3 == 2:
        rate[r.random(partitions) < 0.2] *= 6.0
    fan = r.integers(0, 4, partitions) + FACTOR - 1
    rate = clipped(rate, np.full(partitions, FACTOR, dtype=np.int32), fan, brokers)
    leading = rates(rate, fan) | {"disk": 4e4 * rate * r.lognormal(0.0, 0.5, partitions)}
    following = followers(leading)
    document: Document = {
        "version": 1, "cluster_id": f"gap-{seed}", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": b, "rack": f"r{rack[b]}" if racked else None} for b in range(brokers)],
        "partitions": [
            {"topic": "t", "partition": p, "replicas": home, "leader": home[0],
             "leader_load": {x: float(leading[x][p]) for x in RESOURCES},
             "follower_load": {x: float(following[x][p]) for x in RESOURCES}}
            for p, home in enumerate(homes)
        ],
    }  # fmt: skip
    goals: list[Document] = [{"kind": "usage_distribution", "resource": x, "bound": band} for x in resources]
    goals += [{"kind": "rack_aware"}] if racked else []
    return Case(build_snapshot(document), json.dumps({"version": 1, "goals": goals}), resources, band)


def instance_of(case: Case, result: Plan) -> Instance:
    """The exact model's view of a case; means are the plan's, which are the contract's."""
    s = case.snapshot
    vectors = [s.vectors(x) for x in case.resources]
    bands = [result.bands[f"usage_distribution-{x}"] for x in case.resources]
    names = sorted({x for x in s.racks if x is not None})
    rack = np.array([names.index(x) if x is not None else len(names) + b for b, x in enumerate(s.racks)])
    return Instance(
        home=held_by(s),
        leading=np.stack([v[0] for v in vectors], axis=1), following=np.stack([v[1] for v in vectors], axis=1),
        size=s.vectors("disk")[0],
        mean=np.array([[band[int(b)].mean for band in bands] for b in s.broker_ids]),
        rack=rack, rack_limit=-(-FACTOR // len(np.unique(rack))), bound=case.band,
    )  # fmt: skip


def held_by(snapshot: Snapshot) -> BoolArray:
    """bool [P, B]."""
    found: BoolArray = (snapshot.replicas[:, :, None] == np.arange(snapshot.broker_count)).any(axis=1)
    return found


def led_by(snapshot: Snapshot) -> BoolArray:
    """bool [P, B]."""
    found: BoolArray = snapshot.leader[:, None] == np.arange(snapshot.broker_count)
    return found


def measured(seed: int, band: float, acceptance: Acceptance, time_limit: float) -> Gap:
    """One cluster planned, and held against the exact model.

    Raises
    ------
    AssertionError
        The model claims an optimum that the planner beats: one of the two is wrong.
    """
    case = small_case(seed, band)
    result = plan(case.snapshot, parse_goals(case.goals, "gap"), PlanOptions(acceptance=acceptance))
    instance = instance_of(case, result)
    end = placement_after(case.snapshot, result)
    worst, moved = instance.worst(held_by(end), led_by(end)), instance.moved(held_by(end))
    in_band = worst <= instance.bound * (1 + TOLERANCE)
    balance = Answer(worst, True) if in_band else least_deviation(instance, moved, worst, time_limit)
    thrift = fewest_bytes(instance, worst, time_limit)
    least, fewest = settled(balance, worst), settled(thrift, moved)
    return Gap(
        seed=seed, brokers=case.snapshot.broker_count, partitions=case.snapshot.partition_count,
        resources=len(case.resources), racked=instance.rack_limit < FACTOR and case.snapshot.racks[0] is not None,
        band=band, acceptance=acceptance,
        worst_before=instance.worst(instance.home, led_by(case.snapshot)), worst=worst, least_worst=least,
        bytes_moved=moved / instance.all_bytes, fewest_bytes=None if fewest is None else fewest / instance.all_bytes,
        unexplained=sum(bool(b.violates) and is_unexplained(b) for b in result.brokers),
    )  # fmt: skip


def settled(answer: Answer, ours: float) -> float | None:
    """The proven optimum, never above what the planner reached; None where there is no proof."""
    if not answer.proven or answer.value is None:
        return None
    if answer.value > ours * (1 + TOLERANCE) + TOLERANCE:
        raise AssertionError(f"the planner reached {ours}, and the exact model says that {answer.value} is the best")
    return min(answer.value, ours)


# --- table ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    mean: float
    p95: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    found = np.array(values if len(values) else [np.nan])
    return Spread(float(found.mean()), float(np.quantile(found, 0.95)), float(found.max()))


def summary(gaps: Sequence[Gap]) -> Document:
    """Of clusters with one band and acceptance: gaps of the worst deviation (points of the mean, and relative) and of bytes."""
    balance = [(g.worst, g.least_worst) for g in gaps if g.least_worst is not None]
    thrift = [(g.bytes_moved, g.fewest_bytes) for g in gaps if g.fewest_bytes is not None]
    return {
        "clusters": len(gaps),
        "left_out_of_band": sum(g.worst > g.band * (1 + 1e-6) for g in gaps),
        "deviation_unsettled": len(gaps) - len(balance),
        "deviation_points": asdict(spread([ours - best for ours, best in balance])),
        "deviation_relative": asdict(spread([ours / best - 1.0 for ours, best in balance])),
        "bytes_unsettled": len(gaps) - len(thrift),
        "bytes_points": asdict(spread([ours - best for ours, best in thrift])),
        "bytes_relative": asdict(spread([ours / best - 1.0 for ours, best in thrift if best > 1e-9])),
    }


def table(title: str, found: Document) -> str:
    lines = [f"{title}: {found['clusters']} clusters, {found['left_out_of_band']} end out of band"]
    for name, text in (("deviation", "worst deviation at equal bytes"), ("bytes", "bytes at equal worst deviation")):
        points, relative = found[f"{name}_points"], found[f"{name}_relative"]
        lines.append(
            f"  {text:<32} over the optimum: mean {points['mean']:.2%} p95 {points['p95']:.2%} max {points['most']:.2%} of the "
            f"{'mean' if name == 'deviation' else 'data'}; relative mean {relative['mean']:.1%} p95 {relative['p95']:.1%} "
            f"max {relative['most']:.1%}; {found[f'{name}_unsettled']} unsettled"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--instances", type=int, default=60, metavar="N")
    add("--first", type=int, default=0, metavar="SEED", help="seed of the first cluster")
    add("--bands", type=numbers(float), default=[0.10, 0.02], metavar="X,Y")
    add("--acceptance", type=listed(("score", "potential")), default=["score", "potential"], metavar="A,B")
    add("--time-limit", type=float, default=20.0, metavar="SECONDS", help="of the exact model, for each question")
    add("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(arguments)
    written = []
    for band in chosen.bands:
        for acceptance in chosen.acceptance:
            seeds = range(chosen.first, chosen.first + chosen.instances)
            gaps = [measured(seed, band, acceptance, chosen.time_limit) for seed in seeds]
            found = summary(gaps)
            print(table(f"band {band:.0%}, acceptance {acceptance}", found), flush=True)
            written.append({"band": band, "acceptance": acceptance, **found, "gaps": [asdict(g) for g in gaps]})
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({**surroundings(), "rows": written}, indent=1) + "\n")


if __name__ == "__main__":
    main()
