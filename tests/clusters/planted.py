"""Clusters whose hard limits leave little room: a placement is made first, limits are set a little above its loads, then most replicas
are put elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot

RESOURCES = ("disk", "network_in", "network_out")
RACKS = 3
STAYS = 0.3  # of the partitions are where the placement has them


@dataclass(frozen=True)
class Planted:
    """A cluster, and goals that one of its placements meets: a share `slack` of each limit is left free there."""

    snapshot: Snapshot
    goals: dict[str, Any]


def planted(seed: int, brokers: tuple[int, int] = (3, 6), replicas_a_broker: tuple[int, int] = (2, 8)) -> Planted:
    """One to three resources with hard limits, one to three replicas, some with racks, some with a target range besides."""
    r = np.random.default_rng([seed, 7919])
    count = int(r.integers(brokers[0], brokers[1] + 1))
    factor = int(r.integers(1, 4))
    partitions = max(count * int(r.integers(replicas_a_broker[0], replicas_a_broker[1] + 1)) // factor, 1)
    rack = np.arange(count) % (RACKS if r.random() < 0.4 else count)
    limited, slack = RESOURCES[: int(r.integers(1, 4))], float(r.choice([0.02, 0.05, 0.1]))
    rate = 1e6 * r.lognormal(0.0, 1.0, partitions)
    disk = 1e5 * rate * r.lognormal(0.0, 0.5, partitions)
    leading = {"disk": disk, "network_in": rate, "network_out": rate * r.integers(factor, factor + 3, partitions)}
    following = {"disk": disk, "network_in": rate, "network_out": np.zeros(partitions)}
    load = {x: np.zeros(count) for x in RESOURCES}
    rows = []
    for p in np.argsort(-rate).tolist():
        fullest = sum(load[x] / (leading[x].sum() + (factor - 1) * following[x].sum()) for x in limited)
        there = spread(np.argsort(fullest + 1e-3 * r.random(count)), rack, factor)
        r.shuffle(there)
        for i, b in enumerate(there):
            for x in RESOURCES:
                load[x][b] += (leading if i == 0 else following)[x][p]
        home = there if r.random() < STAYS else spread(r.permutation(count), rack, factor)
        rows.append({
            "topic": "t", "partition": p, "replicas": home, "leader": home[0],
            "leader_load": {x: float(leading[x][p]) for x in RESOURCES}, "follower_load": {x: float(following[x][p]) for x in RESOURCES},
        })  # fmt: skip
    document = {
        "version": 1, "cluster_id": f"planted-{seed}", "taken_at": "2026-11-20T12:00:00Z", "storage": "local", "partitions": rows,
        "brokers": [
            {"id": b, "rack": f"r{rack[b]}", "capacity": {x: float(load[x][b] / (1.0 - slack)) for x in RESOURCES}} for b in range(count)
        ],
    }  # fmt: skip
    goals: list[dict[str, Any]] = [{"kind": "rack_aware"}, *({"kind": "capacity", "resource": x, "limit": 1.0} for x in limited)]
    if r.random() < 0.5:
        goals.append({"kind": "usage_distribution", "resource": "network_in", "bound": 0.2})
    return Planted(build_snapshot(document), {"version": 1, "goals": goals})


def spread(order: npt.NDArray[np.int64], rack: npt.NDArray[np.int64], factor: int) -> list[int]:
    """The first `factor` brokers in that order that keep racks apart."""
    most = -(-factor // len(np.unique(rack)))
    found: list[int] = []
    for b in order.tolist():
        if len(found) < factor and int((rack[found] == rack[b]).sum()) < most:
            found.append(b)
    return found
