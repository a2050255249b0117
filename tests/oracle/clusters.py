"""Random clusters and goals, from a seed alone: what planners meet in the field and what they would rather
not.

`case_of(seed)` gives snapshot and goals documents and options; equal seeds give equal cases on any machine.
Used by the property tests (`cases` is a Hypothesis strategy over seeds) and by `stress`. Knows nothing of the
product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]

RESOURCES = ("network_in", "network_out", "cpu", "disk", "produce_rate", "fetch_rate")
TYPICAL = {
    "network_in": 1e6, "network_out": 3e6, "cpu": 0.02,
    "disk": 5e9, "produce_rate": 100.0, "fetch_rate": 200.0,
}  # fmt: skip
COUNTED = ("replicas", "leaders")
TOPIC_NAMES = ("orders", "payments", "clicks", "__consumer_offsets", "audit.log", "iot", "users", "search")


@dataclass(frozen=True)
class Case:
    """One thing to plan. `options` has what-ifs and budgets under the names of `PlanOptions`."""

    seed: int
    snapshot: Document
    goals: Document
    acceptance: str
    options: Document = field(default_factory=dict)

    def without(self, **replaced: Any) -> Case:
        """The same case with some parts put in place of others."""
        parts = {
            "seed": self.seed, "snapshot": self.snapshot, "goals": self.goals,
            "acceptance": self.acceptance, "options": self.options,
        }  # fmt: skip
        return Case(**{**parts, **replaced})


def case_of(seed: int, *, most_brokers: int = 60, per_broker: int = 30) -> Case:
    """The case of a seed; clusters of 3 to `most_brokers` brokers, on average up to `per_broker` replicas on
    each.
    """
    r = Random(f"trimtab {seed}")
    brokers = brokers_of(r, min(most_brokers, r.choice((3, 4, 5, 6, 8, 10, 15, 25, 60))))
    partitions = partitions_of(r, brokers, per_broker)
    snapshot = {
        "version": 1, "cluster_id": f"random-{seed}", "taken_at": "2026-11-20T12:00:00Z",
        "storage": "shared" if r.random() < 0.15 else "local", "brokers": brokers, "partitions": partitions,
    }  # fmt: skip
    goals = goals_of(r, snapshot)
    f = Random(f"frozen {seed}")  # of its own, so that the other parts of a case stay as they were
    if f.random() < 0.15:
        goals["constraints"]["freeze_topics"] = f.sample(("__*", "orders", "*s", "i?t", "p*"), f.randint(1, 2))
    m = Random(f"fewest {seed}")
    if m.random() < 0.15:
        goals["goals"].append(topic_minimum(m))
    goals["constraints"] |= sets_of(Random(f"sets {seed}"), [b["id"] for b in brokers], 0.15)
    options = options_of(r, snapshot) if r.random() < 0.35 else {}
    return Case(seed, snapshot, goals, r.choice(("score", "score", "potential")), options)


def sets_of(r: Random, ids: list[int], share: float) -> Document:
    """Broker sets, in `share` of all cases: of one to three, some take the rest, and some leave no broker without a set."""
    if r.random() >= share or len(ids) < 2:
        return {}
    ids, names = r.sample(ids, len(ids)), r.sample(TOPIC_NAMES, len(TOPIC_NAMES))
    number = r.randint(1, min(3, len(ids)))
    cuts = sorted(r.sample(range(1, len(ids) + 1), number))
    sets: list[Document] = []
    for i, (start, end) in enumerate(zip([0, *cuts], cuts, strict=False)):
        topics = [r.choice((names[i], names[i], "*s", "__*")) for _ in range(r.randint(1, 2))]
        topics = [t for t in dict.fromkeys(topics) if all(t not in other.get("topics", ()) for other in sets)] or [names[i + 3]]
        sets.append({"name": f"set-{i}", "brokers": ids[start:end], "topics": topics})
    if r.random() < 0.3:
        del sets[0]["topics"]
    return {"broker_sets": sets}


def with_sets(case: Case) -> Case:
    """The case with broker sets, where it has two brokers."""
    sets = sets_of(Random(f"more sets {case.seed}"), [b["id"] for b in case.snapshot["brokers"]], 1.0)
    return case.without(goals={**case.goals, "constraints": {**case.goals["constraints"], **sets}})


def cases(*, most_brokers: int = 12, per_broker: int = 12) -> st.SearchStrategy[Case]:
    """A Hypothesis strategy of cases; a failing example names its seed."""
    return st.integers(0, 2**32 - 1).map(
        lambda seed: case_of(seed, most_brokers=most_brokers, per_broker=per_broker)
    )


# Brokers


def brokers_of(r: Random, count: int) -> list[Document]:
    ids = sorted(r.sample(range(1, 3 * count), count)) if r.random() < 0.3 else list(range(1, count + 1))
    racks = racks_of(r, count)
    capacities = capacities_of(r, count)
    brokers: list[Document] = []
    for i, broker in enumerate(ids):
        entry: Document = {"id": broker, "rack": racks[i]}
        if capacities[i]:
            entry["capacity"] = capacities[i]
        brokers.append(entry)
    troubled = 0.0 if r.random() < 0.4 else 0.25
    for entry in brokers:
        if r.random() < troubled:
            entry["state"] = r.choice(("draining", "dead", "excluded", "active"))
    if all(b.get("state", "active") != "active" for b in brokers) and r.random() < 0.9:
        brokers[0].pop("state", None)
    return brokers


def racks_of(r: Random, count: int) -> list[str | None]:
    style = r.random()
    if style < 0.2:
        return [None] * count
    number = r.randint(1, min(5, count))
    if style < 0.6:
        return [f"rack-{i % number}" for i in range(count)]
    names: list[str | None] = [f"rack-{i}" for i in range(number)]
    weights = [r.uniform(0.2, 3.0) for _ in names]
    if style > 0.85:
        names.append(None)
        weights.append(1.0)
    return r.choices(names, weights, k=count)


def capacities_of(r: Random, count: int) -> list[dict[str, float]]:
    """Per broker: nothing, all alike, or 1x, 2x and 4x, some left out; sometimes for counts too."""
    style = r.choice(("none", "alike", "mixed", "mixed", "some"))
    if style == "none":
        return [{} for _ in range(count)]
    resources = r.sample(RESOURCES, r.randint(1, 4))
    if r.random() < 0.3:
        resources += list(COUNTED)
    whole = {x: TYPICAL.get(x, 1.0) * r.choice((10, 40, 200)) for x in resources}
    result = []
    for _ in range(count):
        factor = 1 if style == "alike" else r.choice((1, 2, 4))
        mine = {x: float(amount * factor) for x, amount in whole.items()}
        if style == "some":
            mine = {x: amount for x, amount in mine.items() if r.random() < 0.8}
        if r.random() < 0.02 and mine:
            mine[next(iter(mine))] = 0.0
        result.append(mine)
    return result


# Partitions


def partitions_of(r: Random, brokers: list[Document], per_broker: int) -> list[Document]:
    ids = [b["id"] for b in brokers]
    weights = placement_of(r, brokers)
    rack_by_id = {b["id"]: b["rack"] for b in brokers}
    rack_count = len({x for x in rack_by_id.values() if x is not None})
    factors = replication_of(r, len(ids), rack_count)
    total = r.randint(0, len(ids) * per_broker) if r.random() < 0.9 else r.randint(0, 3)
    known, missing_in_places = resources_of(r)
    silent = {x for x in known if r.random() < 0.1}  # reported, and zero everywhere
    aware = r.random() < 0.5
    leaderless = 0.0 if r.random() < 0.6 else 0.1
    giants = r.random() < 0.3
    following = r.choice(("implied", "given", "mixed"))
    even = r.random() < 0.1
    next_number: dict[str, int] = {}
    partitions: list[Document] = []
    used = 0
    while used < total:
        topic = r.choice(TOPIC_NAMES)
        number = next_number.get(topic, 0)
        next_number[topic] = number + r.choice((1, 1, 1, 2))
        replicas = replicas_of(r, ids, weights, min(r.choice(factors), len(ids)), rack_by_id if aware else {})
        leading = {}
        scale = 1.0 if even else r.lognormvariate(0.0, 1.5) * (60.0 if giants and r.random() < 0.02 else 1.0)
        for x in known:
            if missing_in_places and r.random() < 0.1:
                continue
            leading[x] = (
                0.0 if x in silent else TYPICAL[x] * (scale if even else scale * r.lognormvariate(0.0, 0.5))
            )
        entry: Document = {"topic": topic, "partition": number, "replicas": replicas, "leader_load": leading}
        if following == "given" or (following == "mixed" and r.random() < 0.5):
            share = {"network_in": 1.0, "disk": 1.0, "cpu": 0.4, "network_out": 0.0}
            odd = r.random() < 0.05  # a follower that costs more than its leader
            entry["follower_load"] = {
                x: v * (1.5 if odd else share.get(x, 0.2)) for x, v in leading.items() if r.random() < 0.95
            }
        entry["leader"] = leader_of(r, replicas, brokers, leaderless)
        partitions.append(entry)
        used += len(replicas)
    r.shuffle(partitions)
    return partitions


def placement_of(r: Random, brokers: list[Document]) -> list[float]:
    """How much each broker attracts replicas: even, skewed, or some empty."""
    style = r.choice(("even", "skewed", "empty"))
    weights = [1.0 if style == "even" else r.lognormvariate(0.0, 0.8) for _ in brokers]
    if style == "empty" and len(brokers) > 4:
        for i in r.sample(range(len(brokers)), max(1, len(brokers) // 10)):
            weights[i] = 0.0
    return weights


def replication_of(r: Random, brokers: int, racks: int) -> list[int]:
    style = r.random()
    if style < 0.2 and racks:
        return [racks]  # the rack rule forces each rack's share
    if style < 0.6:
        return [r.randint(1, min(4, brokers))]
    return [x for x in (1, 2, 3, 3, 3, 4) if x <= brokers]


def replicas_of(r: Random, ids: list[int], weights: list[float], factor: int,
                racks: dict[int, str | None]) -> list[int]:  # fmt: skip
    chosen: list[int] = []
    while len(chosen) < factor:
        left = [b for b in ids if b not in chosen]
        if racks:
            fresh = [b for b in left if racks[b] not in {racks[c] for c in chosen}]
            left = fresh or left
        attraction = [weights[ids.index(b)] for b in left]
        chosen.append(r.choices(left, attraction)[0] if sum(attraction) > 0 else r.choice(left))
    return chosen


def leader_of(r: Random, replicas: list[int], brokers: list[Document], leaderless: float) -> int | None:
    state = {b["id"]: b.get("state", "active") for b in brokers}
    if r.random() < leaderless:
        return None
    live = [b for b in replicas if state[b] != "dead"]
    if not live:
        return r.choice((None, replicas[0]))
    if r.random() < 0.05:
        return r.choice(replicas)  # at times a dead one: what a capture in the middle of a failure has
    return live[0] if r.random() < 0.8 else r.choice(live)


def resources_of(r: Random) -> tuple[list[str], bool]:
    """Resources that are reported, and whether some partitions lack some of them."""
    style = r.random()
    if style < 0.08:
        return [], False
    if style < 0.5:
        return ["network_in", "network_out", "cpu", "disk"], False
    return r.sample(RESOURCES, r.randint(1, len(RESOURCES))), r.random() < 0.3


# Goals


def goals_of(r: Random, snapshot: Document) -> Document:
    goals: list[Document] = []
    groups = r.choice(((None,), (None,), ("network", "space", None), ("one", "two")))

    def soft(goal: Document) -> Document:
        if r.random() < 0.4:
            goal["weight"] = r.choice((0.5, 2.0, 3.0, 10.0))
        group = r.choice(groups)
        if group is not None:
            goal["group"] = group
        return goal

    if r.random() < 0.7:
        goals.append(
            {"kind": "rack_aware"} if r.random() < 0.75 else soft({"kind": "rack_aware", "hard": False})
        )
    for resource in r.sample(RESOURCES, r.choice((0, 0, 1, 2))):
        limit = r.choice((0.3, 0.6, 0.8, 1.0))
        entry = {"kind": "capacity", "resource": resource, "limit": limit}
        goals.append(entry if r.random() < 0.7 else soft({**entry, "hard": False}))
    if r.random() < 0.3:
        goals.append(count_limit(r, snapshot, soft))
    distributed = ("network_in", "network_out", "cpu", "disk", "replicas", "leaders", "leader_network_in",
                   "potential_network_out", "produce_rate")  # fmt: skip
    for resource in r.sample(distributed, r.randint(0, 6)):
        goals.append(usage_distribution(r, resource, soft))
    for resource in COUNTED:
        if r.random() < 0.15:
            entry = {"kind": "topic_distribution", "resource": resource}
            if r.random() < 0.5:
                entry["bound"] = r.choice((0.05, 0.3, 1.0))
                if entry["bound"] == 0.3:
                    entry["min_gap"] = 1
            goals.append({**entry, "hard": True} if r.random() < 0.1 else soft(entry))
    if not goals:
        goals.append({"kind": "usage_distribution", "resource": "replicas"})
    r.shuffle(goals)
    constraints: Document = {}
    if r.random() < 0.3:
        constraints["exclude_topics"] = r.sample(("__*", "orders", "*s", "i?t", "nothing-*"), r.randint(1, 2))
    if r.random() < 0.1:
        constraints["include_topics"] = r.sample(("orders", "clicks", "p*", "*"), 2)
    if r.random() < 0.15:
        ids = [b["id"] for b in snapshot["brokers"]]
        constraints["exclude_brokers"] = r.sample(ids, min(len(ids) - 2, r.randint(1, 2)))
    return {"version": 1, "goals": goals, "constraints": constraints}


def count_limit(r: Random, snapshot: Document, soft: Any) -> Document:
    """Around what the brokers have on average, so that it binds, or cannot be met at all."""
    resource = r.choice(COUNTED)
    each = 1 if resource == "leaders" else None
    total = sum(each or len(p["replicas"]) for p in snapshot["partitions"])
    level = max(1, round(total / len(snapshot["brokers"]) * r.choice((0.9, 1.05, 1.3, 2.0))))
    entry = {"kind": "count_limit", "resource": resource, "max": level}
    return entry if r.random() < 0.7 else soft({**entry, "hard": False})


def topic_minimum(r: Random) -> Document:
    topics = r.sample((*TOPIC_NAMES, "*s", "*"), r.randint(1, 2))
    entry: Document = {"kind": "topic_minimum", "resource": r.choice(COUNTED), "topics": topics}
    if r.random() < 0.7:
        entry["min"] = r.choice((1, 1, 2, 4))
    return {**entry, "hard": True} if r.random() < 0.5 else entry


def usage_distribution(r: Random, resource: str, soft: Any) -> Document:
    entry: Document = {"kind": "usage_distribution", "resource": resource}
    if r.random() < 0.4:
        entry["bound"] = r.choice((0.02, 0.05, 0.2, 0.5))
    style = r.random()
    if style < 0.2:
        entry["var"] = r.choice((0.8, 1.5, 3.0))
    elif style < 0.35 and resource in ("network_in", "network_out", "leader_network_in"):
        entry["var"] = r.choice(("1MiB", "100MiB", "50MB"))
    elif style < 0.4 and resource == "disk":
        entry["var"] = "20GiB"
    if r.random() < 0.3:
        entry["tail"] = "absolute"
    if r.random() < 0.2:
        entry["min_load"] = r.choice((1e6, 2.0, 0.05, 1e10))
    return {**entry, "hard": True} if r.random() < 0.1 else soft(entry)


# Options


def options_of(r: Random, snapshot: Document) -> Document:
    ids = [b["id"] for b in snapshot["brokers"]]
    racks = sorted({b["rack"] for b in snapshot["brokers"] if b["rack"] is not None})
    topics = sorted({p["topic"] for p in snapshot["partitions"]})
    options: Document = {}
    if r.random() < 0.3:
        new = range(max(ids) + 1, max(ids) + 1 + r.randint(1, 3))
        options["add_brokers"] = [(b, r.choice(racks) if racks else None) for b in new]
    if r.random() < 0.3:
        options["remove_brokers"] = [r.choice(ids)]
    if r.random() < 0.2:
        options["exclude_brokers"] = [r.choice(ids)]
    if r.random() < 0.2:
        options["exclude_topics"] = [r.choice(("orders", "*s", "__*"))]
    if r.random() < 0.2 and topics:
        options["scale_load"] = [(r.choice(topics), r.choice((0.5, 3.0, 10.0)))]
    if r.random() < 0.3:
        options["max_moves"] = r.choice((0, 1, 3, 10, 50))
    if r.random() < 0.2:
        options["max_bytes"] = r.choice((0, 10**9, 50 * 10**9))
    if r.random() < 0.2:
        options["max_partitions"] = r.choice((1, 5, 20))
    return options
