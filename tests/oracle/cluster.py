"""The cluster as dictionaries: what is where, and what it costs there (docs/contract.md, section 2).

Literal readings where the contract leaves room:

- An imagined broker (``add_brokers``) is active and has, of each resource, the lower median of the capacities
  that are given (the contract does not say; without one, one imagined broker would switch off every capacity
  rule). One that is there already stays as it is.
- ``remove_brokers`` makes an active broker draining; one that is dead or excluded stays so.
- ``exclude_brokers`` (option or constraint) makes a broker excluded whatever its state was.
- ``scale_load`` multiplies every measured resource of leader and follower of the topics it matches; several
  matching globs multiply.
- A topic is movable when it matches no excluded glob and, where included globs are given, one of those. A topic that is not
  movable is changed by repairs only, and a frozen one by nothing.
- A topic is of the first broker set of which it matches a glob, else of the set without globs, else of the brokers of no set. Where there
  are none of these, it may stand anywhere, and is changed by repairs only.
- A live replica is one on a broker that is not dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import fsum
from typing import Any

Key = tuple[str, int]
Document = Mapping[str, Any]

MEASURED = ("network_in", "network_out", "cpu", "disk", "produce_rate", "fetch_rate")


@dataclass
class Broker:
    rack: str | None
    state: str
    capacity: dict[str, float]


@dataclass
class Partition:
    leader_load: dict[str, float]
    follower_load: dict[str, float]
    movable: bool
    frozen: bool
    home: frozenset[int] | None  # brokers of its set


class Cluster:
    """Brokers, partitions, replica lists and leaders; `change` is the only thing that alters it."""

    def __init__(self, snapshot: Document, constraints: Mapping[str, list[Any]], options: Document) -> None:
        self.local = snapshot.get("storage", "local") == "local"
        self.brokers = {
            b["id"]: Broker(b.get("rack"), b.get("state") or "active", dict(b.get("capacity") or {}))
            for b in snapshot["brokers"]
        }
        typical = typical_capacity(snapshot)
        for broker, rack in options.get("add_brokers") or []:
            self.brokers.setdefault(broker, Broker(rack, "active", dict(typical)))
        for broker in options.get("remove_brokers") or []:
            if self.brokers[broker].state == "active":
                self.brokers[broker].state = "draining"
        for broker in [*constraints["exclude_brokers"], *(options.get("exclude_brokers") or [])]:
            if broker in self.brokers:
                self.brokers[broker].state = "excluded"
        excluded = [*constraints["exclude_topics"], *(options.get("exclude_topics") or [])]
        included = constraints["include_topics"]
        sets = constraints["broker_sets"]
        rest = frozenset(self.brokers) - {b for members, _ in sets for b in members}
        self.sets = [frozenset(members) & set(self.brokers) for members, _ in sets] + [rest] if sets else [rest]
        self.partitions: dict[Key, Partition] = {}
        self.replicas: dict[Key, list[int]] = {}
        self.leader: dict[Key, int | None] = {}
        self.factor: dict[Key, int] = {}  # replicas in the end; only a plan of replication factors changes them
        self.hosted: dict[int, set[Key]] = {b: set() for b in self.brokers}
        for p in snapshot["partitions"]:
            key = (p["topic"], p["partition"])
            leading = {r: float(v) for r, v in (p.get("leader_load") or {}).items() if v is not None}
            if p.get("follower_load") is None:
                following = {r: leading[r] for r in ("network_in", "disk") if r in leading}
            else:
                following = {r: float(v) for r, v in p["follower_load"].items() if v is not None}
            for glob, factor in options.get("scale_load") or []:
                if fnmatchcase(key[0], glob):
                    leading = {r: v * factor for r, v in leading.items()}
                    following = {r: v * factor for r, v in following.items()}
            movable = not any(fnmatchcase(key[0], glob) for glob in excluded)
            if included and not any(fnmatchcase(key[0], glob) for glob in included):
                movable = False
            homes = [members for members, globs in sets if globs is not None and any(fnmatchcase(key[0], glob) for glob in globs)]
            homes += [*(members for members, globs in sets if globs is None), *([rest] if rest else [])]
            home = frozenset(homes[0]) if sets and homes else None
            movable = movable and (home is not None or not sets)
            frozen = any(fnmatchcase(key[0], glob) for glob in constraints["freeze_topics"])
            self.partitions[key] = Partition(leading, following, movable and not frozen, frozen, home)
            self.replicas[key] = list(p["replicas"])
            self.leader[key] = p.get("leader")
            self.factor[key] = len(p["replicas"])
            for b in p["replicas"]:
                self.hosted[b].add(key)
        self.reported = {
            r for p in self.partitions.values() for r in (*p.leader_load, *p.follower_load) if r in MEASURED
        }

    @property
    def active(self) -> list[int]:
        """Eligible brokers, by id."""
        return sorted(b for b, broker in self.brokers.items() if broker.state == "active")

    def is_reported(self, resource: str) -> bool:
        source = {"replicas": None, "leaders": None, "leader_network_in": "network_in",
                  "potential_network_out": "network_out"}.get(resource, resource)  # fmt: skip
        return source is None or source in self.reported

    def as_leader(self, key: Key, resource: str) -> float:
        """What the leader replica of a partition costs its broker."""
        load = self.partitions[key].leader_load
        if resource in ("replicas", "leaders"):
            return 1.0
        if resource == "leader_network_in":
            return load.get("network_in", 0.0)
        if resource == "potential_network_out":
            return load.get("network_out", 0.0)
        return load.get(resource, 0.0)

    def as_follower(self, key: Key, resource: str) -> float:
        """What each other replica of a partition costs its broker."""
        if resource == "replicas":
            return 1.0
        if resource in ("leaders", "leader_network_in"):
            return 0.0
        if resource == "potential_network_out":
            return self.partitions[key].leader_load.get("network_out", 0.0)
        return self.partitions[key].follower_load.get(resource, 0.0)

    def cost(self, key: Key, broker: int, resource: str) -> float:
        """What a partition costs one of the brokers that host it."""
        if self.leader[key] == broker:
            return self.as_leader(key, resource)
        return self.as_follower(key, resource)

    def load(self, broker: int, resource: str) -> float:
        return fsum(self.cost(key, broker, resource) for key in self.hosted[broker])

    def bytes_of(self, key: Key) -> float:
        """What copying one replica of a partition moves over the network."""
        return self.partitions[key].leader_load.get("disk", 0.0) if self.local else 0.0

    def bytes_moved(self, changes: Iterable[Document]) -> float:
        """What the changes of an action, or the proposals of a plan, copy."""
        return fsum(
            self.bytes_of((ch["topic"], ch["partition"]))
            * len(set(ch["replicas_after"]) - set(ch["replicas_before"]))
            for ch in changes
        )

    def may_host(self, key: Key, broker: int) -> bool:
        """Whether a broker is of the partition's set."""
        home = self.partitions[key].home
        return home is None or broker in home

    def is_astray(self, key: Key, broker: int) -> bool:
        """Whether a replica on this broker would have to come to its set."""
        return self.partitions[key].movable and not self.is_offline(key) and not self.may_host(key, broker)

    def is_offline(self, key: Key) -> bool:
        """Whether no replica is left that could be copied or led from."""
        return all(self.brokers[b].state == "dead" for b in self.replicas[key])

    def rack_of(self, broker: int) -> object:
        """The rack's name, or something that only this broker has."""
        rack = self.brokers[broker].rack
        return ("rack", rack) if rack is not None else ("alone", broker)

    def change(self, key: Key, replicas: Iterable[int], leader: int | None) -> None:
        for b in self.replicas[key]:
            self.hosted[b].discard(key)
        self.replicas[key] = list(replicas)
        self.leader[key] = leader
        for b in self.replicas[key]:
            self.hosted[b].add(key)


def wanted_factor(topic: str, options: Document) -> int | None:
    """The replication factor that is asked for; of several patterns the last one holds, and ``__*`` topics only by one that starts so."""
    found = None
    for glob, factor in options.get("replication_factor") or ():
        if fnmatchcase(topic, glob) and (glob.startswith("__") or not topic.startswith("__")):
            found = factor
    return found


def typical_capacity(snapshot: Document) -> dict[str, float]:
    """The lower median of each resource's capacities, over all brokers that have one."""
    given: dict[str, list[float]] = {}
    for broker in snapshot["brokers"]:
        for resource, amount in (broker.get("capacity") or {}).items():
            given.setdefault(resource, []).append(amount)
    return {resource: sorted(amounts)[(len(amounts) - 1) // 2] for resource, amounts in given.items()}


def changed_document(snapshot: Document, final: Mapping[Key, tuple[list[int], int | None]],
                     added: Iterable[tuple[int, str | None]] = ()) -> dict[str, Any]:  # fmt: skip
    """The snapshot document with other replica lists and leaders, and the imagined brokers made real."""
    brokers = list(snapshot["brokers"])
    for broker, rack in added:
        if all(b["id"] != broker for b in brokers):
            brokers.append({"id": broker, "rack": rack, "capacity": typical_capacity(snapshot)})
    partitions = []
    for p in snapshot["partitions"]:
        replicas, leader = final.get((p["topic"], p["partition"]), (p["replicas"], p.get("leader")))
        partitions.append({**p, "replicas": list(replicas), "leader": leader})
    return {**snapshot, "brokers": brokers, "partitions": partitions}
