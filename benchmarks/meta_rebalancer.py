"""The planner beside Meta's Rebalancer (PyPI `rebalancer` 1.0.4) on the same instance, where a CPython that has it is at hand.

``python -m benchmarks.meta_rebalancer --python PATH [--brokers 100] [--replicas 30000] [--modes fast,thorough]
[--seconds 120] [--seed 0]``

It needs CPython 3.12 or newer, ours is older, so it lives in an environment of its own, outside this repository. The instance is one
that both can say exactly: random placement, racks, four resources of which a follower costs as much as a leader, and no broker above
1.1 times the mean of any. Without ``--python`` only our row is printed, with a note.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from benchmarks.apart import ROOT, apart
from benchmarks.cruise_control import rack_excess
from benchmarks.measure import placement_after, surroundings, timed
from benchmarks.planner import listed
from cluster_model.snapshot import Snapshot
from optimizer.options import Acceptance, PlanOptions
from tests.clusters.loads import Loads, draw_loads
from tests.clusters.synthetic import VARIANTS, racks_of, skewed, snapshot_of

MODULE = "benchmarks.meta_rebalancer"
MODES = ("fast", "batches", "sampling", "thorough")
RESOURCES = ("network_in", "network_out", "disk", "cpu")
LIMIT = 1.1  # times the mean
SPREAD = 0.1
# What a move costs: its bytes, or the same for every one, as where storage is shared.
PRICES: dict[str, Literal["local", "shared"]] = {"bytes": "local", "moves": "shared"}
# What Rebalancer is asked, as hard limits; and the stricter thing that our operators ask, levels within a band.
FORMS: dict[str, list[dict[str, object]]] = {
    "limits": [{"kind": "capacity", "resource": x, "limit": LIMIT} for x in RESOURCES],
    "bands": [{"kind": "usage_distribution", "resource": x, "bound": LIMIT - 1.0} for x in RESOURCES],
}


@dataclass(frozen=True)
class Side:
    """What one of the two did. `over` counts brokers above the limit of a resource, summed over resources."""

    who: str
    cpu_s: float
    wall_s: float
    moves: int
    terabytes: float
    over: int
    racks_broken: int


def instance(brokers: int, replicas: int, seed: int, spread: float) -> Snapshot:
    """Random placement, brokers weighted lognormally (`spread`); capacities are the means, so that limits are shares of those."""
    r = np.random.default_rng([seed, brokers, replicas, 2])
    even = VARIANTS["even"]
    loads = draw_loads(r, replicas // 3, brokers, even.factors)
    loads = Loads(loads.topic, loads.number, loads.factor, loads.fan, loads.leading, loads.leading)
    rack, weight = racks_of(r, brokers, even), np.ones(brokers)
    placed = skewed(r, loads.factor, rack, weight, spread)
    snapshot = snapshot_of(f"random-{brokers}-{seed}", loads, placed, rack, weight, np.zeros(brokers, np.int8), even)
    mean = {x: np.full(brokers, float(snapshot.broker_load(x).mean())) for x in RESOURCES}
    return replace(snapshot, capacity=mean)


def judged(who: str, seconds: tuple[float, float], before: Snapshot, after: Snapshot) -> Side:
    moved = (after.replicas[:, :, None] != before.replicas[:, None, :]).all(axis=2).sum(axis=1)
    copied = float((moved * before.leader_load["disk"]).sum()) / 1e12
    over = sum(int((after.broker_load(x) > LIMIT * before.capacity[x] * (1 + 1e-9)).sum()) for x in RESOURCES)
    return Side(who, round(seconds[0], 2), round(seconds[1], 2), int(moved.sum()), round(copied, 3), over, rack_excess(after))


def ours(question: tuple[Snapshot, str, str, Acceptance]) -> tuple[Side, tuple[int, float]]:
    """Our side, and the fewest moves and terabytes that any plan needs."""
    snapshot, form, price, acceptance = question
    asked = replace(snapshot, storage=PRICES[price])
    goals = json.dumps({"version": 1, "goals": [{"kind": "rack_aware"}, *FORMS[form]]})
    result, timing = timed(asked, goals, PlanOptions(acceptance=acceptance))
    side = judged(f"Trimtab, {form}, {price}, {acceptance}", (timing.cpu_s, timing.wall_s), snapshot, placement_after(snapshot, result))
    return side, (result.lower_bounds.replica_moves, result.lower_bounds.bytes_to_move / 1e12)


def theirs(python: Path, snapshot: Snapshot, mode: str, seconds: int) -> Side:
    """Rebalancer's side.

    Raises
    ------
    SystemExit
        The interpreter given cannot run it.
    """
    racks = np.unique(np.array(snapshot.racks), return_inverse=True)[1]
    asked: dict[str, Any] = {
        "replicas": snapshot.replicas.tolist(), "racks": racks.tolist(), "mode": mode, "seconds": seconds,
        "loads": {x: snapshot.leader_load[x].tolist() for x in RESOURCES},
        "limits": {x: LIMIT * float(snapshot.capacity[x][0]) for x in RESOURCES},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        question, answer = Path(home) / "instance.json", Path(home) / "answer.json"
        question.write_text(json.dumps(asked))
        command = [str(python), str(ROOT / "benchmarks" / "meta_rebalancer_worker.py"), str(question), str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            raise SystemExit(f"{python}: Rebalancer did not run ({last[0]}); expected a CPython with `rebalancer` 1.0.4")
        found = json.loads(answer.read_text())
    placed = np.array(found["replicas"], dtype=np.int32)
    after = snapshot.with_placement(placed, placed[:, 0].copy())
    return judged(f"Rebalancer, {mode}", (found["cpu_s"], found["wall_s"]), snapshot, after)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--python", type=Path, metavar="PATH", help="interpreter of an environment that has Rebalancer")
    add("--brokers", type=int, default=100)
    add("--replicas", type=int, default=30_000)
    add("--modes", type=listed(MODES), default=list(MODES), metavar="A,B")
    add("--acceptance", type=listed(("score", "potential")), default=["score", "potential"], metavar="A,B")
    add("--seconds", type=int, default=120, help="most that Rebalancer may search")
    add("--seed", type=int, default=0)
    add("--spread", type=float, default=SPREAD, help="sigma of what makes brokers attractive")
    add("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(arguments)
    snapshot = instance(chosen.brokers, chosen.replicas, chosen.seed, chosen.spread)
    sides: list[Side] = []
    bound, least = 0, 0.0
    for form, price, acceptance in product(FORMS, PRICES, chosen.acceptance):
        question = (snapshot, form, price, acceptance)
        side, needed = cast("tuple[Side, tuple[int, float]]", apart(MODULE, "ours", question))
        sides.append(side)
        if form == "limits":
            bound, least = max(bound, needed[0]), max(least, needed[1])
    if chosen.python is None:
        print("Rebalancer left out: no --python with it was given")
    else:
        sides += [theirs(chosen.python, snapshot, mode, chosen.seconds) for mode in chosen.modes]
    before = judged("before", (0.0, 0.0), snapshot, snapshot)
    print(f"{snapshot.broker_count} brokers, {snapshot.replica_count:,} replicas; at least {bound:,} moves and {least:.3f} TB are needed")
    columns = "{:<32}{:>8}{:>8}{:>10}{:>9}{:>10}{:>9}{:>12}{:>14}"
    print(columns.format("", "CPU s", "wall s", "moves", "x bound", "TB", "x bound", "over limit", "racks broken"))
    for side in [before, *sides]:
        share = f"{side.moves / bound:.3f}" if bound else "-"
        weight = f"{side.terabytes / least:.3f}" if least else "-"
        print(
            columns.format(
                side.who, side.cpu_s, side.wall_s, f"{side.moves:,}", share, side.terabytes, weight, side.over, side.racks_broken
            )
        )
    if chosen.json is not None:
        written = {**surroundings(), "bound": bound, "terabytes_bound": least, "rows": [asdict(side) for side in sides]}
        chosen.json.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
