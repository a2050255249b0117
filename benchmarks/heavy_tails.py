"""Are limits as good as bands? Clusters with the loads of real machines, and what plans for either need.

    python -m benchmarks.heavy_tails [--trace bitbrains_rnd_vm_5min_2013-08.parquet] [--sizes 100x30k,300x150k] [--seeds 0] [--move-cost 0]
        [--without mending]

The trace (GWA-T-12 Bitbrains "Rnd", TU Delft Grid Workloads Archive: Shen, van Beek, Iosup, CCGrid 2015) is not part of the repository;
without it, loads are drawn from lognormals (sigma 2), each resource by itself. A partition loads its broker as one of the machines does
on average: four resources, hardly correlated, heavy tails. 30% of the brokers have half the capacity. All are dealt out evenly; then what
30% of the brokers host grows in one resource, until they stand at two to three times the mean.

Racks, and 1.5 times the mean, are hard. Beyond that a plan is asked for bands of 10%, or for no broker above 1.1 times the mean, as a wish
or as a hard limit. The bounds are those of the limits: what no plan can do without, which brings all brokers below 1.1.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from benchmarks.ablation import OPERATORS, without
from benchmarks.apart import apart
from benchmarks.cruise_control import rack_excess
from benchmarks.ledger import mean
from benchmarks.measure import placement_after, surroundings, timed
from benchmarks.planner import listed
from cluster_model.snapshot import Snapshot
from optimizer.options import Acceptance, PlanOptions
from tests.clusters.loads import FloatArray, Loads, draw_loads
from tests.clusters.synthetic import HEADROOM, VARIANTS, balanced, racks_of, snapshot_of

MODULE = "benchmarks.heavy_tails"
SIZES = {"100x30k": (100, 30_000), "300x150k": (300, 150_000), "1000x1M": (1_000, 1_000_000)}
COLUMNS = {"network_in": "net_rx_kbs", "network_out": "net_tx_kbs", "disk": "mem_kb", "cpu": "cpu_mhz"}
UNITS = {"network_in": 1e3, "network_out": 1e3, "disk": 1e5, "cpu": 1e-4}  # what one of the trace's units is here
FOLLOWS = {"network_in": 1.0, "network_out": 0.0, "disk": 1.0, "cpu": 0.5}  # of a leader's load, what a follower has
LIMIT, HARD = 1.1, 1.5  # times the mean
SMALL, DRIFTED = 0.3, 0.3  # of the brokers
LARGEST = 0.25  # of a broker's mean, what one leader has at most
FORMS: dict[str, list[dict[str, object]]] = {
    "bands": [{"kind": "usage_distribution", "resource": x, "bound": LIMIT - 1.0} for x in COLUMNS],
    "soft limits": [{"kind": "capacity", "name": f"{x}-level", "resource": x, "limit": LIMIT / HEADROOM, "hard": False} for x in COLUMNS],
    "hard limits": [{"kind": "capacity", "name": f"{x}-level", "resource": x, "limit": LIMIT / HEADROOM, "hard": True} for x in COLUMNS],
}


@dataclass(frozen=True)
class Outcome:
    """A plan. `share` is of all bytes stored; `over` counts brokers above 1.1 times a mean, `broken` pairs of broker and resource above
    1.5 times, both after it."""

    form: str
    moves: int
    leaderships: int
    share: float
    over: int
    broken: int
    racks_broken: int
    cpu_s: float
    least_moves: int
    least_share: float


Question = tuple[Snapshot, str, Acceptance, int | None]  # the cluster, one of `FORMS`, the acceptance, what a move costs


def machines(trace: Path | None) -> FloatArray:
    """Mean loads of machines, float64 [n, 4], in the order of `COLUMNS`; machines that do nothing are left out."""
    if trace is None:
        return np.random.default_rng(7).lognormal(0.0, 2.0, (500, len(COLUMNS))) * [5.0, 5.0, 1e6, 300.0] * list(UNITS.values())
    table = pq.read_table(trace, columns=["vm", *COLUMNS.values()])
    vm = np.unique(table["vm"].to_numpy(), return_inverse=True)[1]
    count = np.bincount(vm)
    means = [np.bincount(vm, np.nan_to_num(table[c].to_numpy().astype(np.float64))) / count * UNITS[x] for x, c in COLUMNS.items()]
    found = np.stack(means, axis=1)
    return np.asarray(found[(found > 0.0).all(axis=1)])


def instance(brokers: int, replicas: int, seed: int, machine: FloatArray) -> Snapshot:
    """A cluster as the module says."""
    r = np.random.default_rng([seed, brokers, replicas, 17])
    even = VARIANTS["even"]
    loads = draw_loads(r, replicas // 3, brokers, even.factors)
    rack, weight = racks_of(r, brokers, even), np.where(r.random(brokers) < SMALL, 0.5, 1.0)
    drawn = machine[r.integers(0, len(machine), len(loads.topic))] * r.lognormal(0.0, 0.2, (len(loads.topic), 1))
    loads = _clipped(loads, dict(zip(COLUMNS, drawn.T, strict=True)), brokers)
    placed = balanced(loads, rack, weight, np.ones(brokers, np.bool_), int(r.integers(1, 2**31)), False)
    grown = {x: values.copy() for x, values in loads.leading.items()}
    for broker in r.choice(brokers, int(DRIFTED * brokers), replace=False):
        resource = str(r.choice(list(COLUMNS)))
        hosts = (placed[:, 0] == broker) if FOLLOWS[resource] == 0.0 else (placed == broker).any(axis=1)
        grown[resource][hosts] *= r.uniform(2.0, 3.0)
    loads = _clipped(loads, grown, brokers)
    return snapshot_of(f"heavy-{brokers}-{seed}", loads, placed, rack, weight, np.zeros(brokers, np.int8), even)


def _clipped(loads: Loads, leading: dict[str, npt.NDArray[np.float64]], brokers: int) -> Loads:
    """The same partitions with these loads, none of which is larger than a broker has room for."""
    followers = loads.factor - 1
    cut = {
        x: np.minimum(values, LARGEST * float((values * (1.0 + followers * FOLLOWS[x])).sum()) / brokers) for x, values in leading.items()
    }
    return replace(loads, leading=cut, following={x: values * FOLLOWS[x] for x, values in cut.items()})


def planned(question: Question, limited: bool = True) -> Outcome:
    """What the plan for a form is; with hard limits of 1.5 times the mean where `limited`."""
    snapshot, form, acceptance, move_cost = question
    hard = [{"kind": "capacity", "name": f"{x}-hard", "resource": x, "limit": HARD / HEADROOM} for x in COLUMNS if limited]
    goals = json.dumps({"version": 1, "goals": [{"kind": "rack_aware"}, *hard, *FORMS[form]]})
    result, timing = timed(snapshot, goals, PlanOptions(acceptance=acceptance, move_cost=move_cost))
    after, stored = placement_after(snapshot, result), float(snapshot.broker_load("disk").sum())
    return Outcome(
        form=form if acceptance == "score" else f"{form}, {acceptance}", moves=result.summary.replica_moves,
        leaderships=result.summary.leadership_changes, share=result.summary.bytes_to_move / stored,
        over=int(_above(after, LIMIT).any(axis=1).sum()), broken=int(_above(after, HARD).sum()), racks_broken=rack_excess(after),
        cpu_s=timing.cpu_s, least_moves=result.lower_bounds.replica_moves, least_share=result.lower_bounds.bytes_to_move / stored,
    )  # fmt: skip


def planned_without(question: tuple[Question, str | None]) -> Outcome:
    """As `planned`, by a search without the operator that is named second, if any."""
    with without(question[1]):
        return planned(question[0])


def _above(snapshot: Snapshot, level: float) -> npt.NDArray[np.bool_]:
    """bool [B, 4]: brokers above so many times their means."""
    return np.stack([snapshot.broker_load(x) > level / HEADROOM * snapshot.capacity[x] * (1 + 1e-9) for x in COLUMNS], axis=1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trace", type=Path, help="Parquet file of the trace")
    parser.add_argument("--sizes", type=listed(tuple(SIZES)), default=["100x30k", "300x150k"], metavar="A,B")
    parser.add_argument("--seeds", type=lambda text: [int(x) for x in text.split(",")], default=[0], metavar="N,M")
    parser.add_argument("--acceptance", type=listed(("score", "potential")), default=["score"], metavar="A,B")
    parser.add_argument("--move-cost", type=int, metavar="BYTES", help="what a move costs beside its bytes; very many: moves alone count")
    parser.add_argument("--without", choices=list(OPERATORS), help="an operator of the search that is left out")
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(arguments)
    machine, rows = machines(chosen.trace), []
    print("| cluster | asked | moves | x bound | share of bytes | x bound | leaderships | above 1.1 | above 1.5 | racks | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for size, seed in product(chosen.sizes, chosen.seeds):
        snapshot = instance(*SIZES[size], seed, machine)
        asked = [(snapshot, form, acceptance, chosen.move_cost) for form, acceptance in product(FORMS, chosen.acceptance)]
        outcomes = [cast("Outcome", apart(MODULE, "planned_without", (question, chosen.without))) for question in asked]
        limits = [x for x in outcomes if not x.form.startswith("bands")]
        moves, share = max(x.least_moves for x in limits), max(x.least_share for x in limits)
        over, broken = int(_above(snapshot, LIMIT).any(axis=1).sum()), int(_above(snapshot, HARD).sum())
        print(f"| {size}, seed {seed} | before; bound | {moves:,} | | {share:.2%} | | | {over} | {broken} | {rack_excess(snapshot)} | |")
        for x in outcomes:
            times = (f"{x.moves / moves:.2f}" if moves else "–", f"{x.share / share:.2f}" if share else "–")
            print(
                f"| | {x.form} | {x.moves:,} | {times[0]} | {x.share:.2%} | {times[1]} | {x.leaderships:,} | {x.over} | {x.broken} "
                f"| {x.racks_broken} | {x.cpu_s:.2f} |", flush=True,
            )  # fmt: skip
            rows.append({"size": size, "seed": seed, **asdict(x)})
    for form in dict.fromkeys(str(row["form"]) for row in rows if len(chosen.seeds) > 1):
        some = [row for row in rows if row["form"] == form]
        means = {name: mean(float(str(row[name])) for row in some) for name in ("moves", "share", "leaderships")}
        cpu = sum(float(str(row["cpu_s"])) for row in some)
        text = f"{means['moves']:,.0f} | | {means['share']:.2%} | | {means['leaderships']:,.0f}"
        print(f"| geometric mean; CPU of all | {form} | {text} | | | | {cpu:.2f} |")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({**surroundings(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
