"""Example `Plan` records for tests of reports: what a planner could hand out, built from a seed alone.

`example_plan` is a cluster that would be levelled; its keyword arguments and the other builders vary what
an operator may meet. Numbers hang together (scores follow from loads and bands, actions join the states
before and after), but no planner ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import overload

from goals.score import distribution_score
from optimizer.plan import (
    Action,
    ActionType,
    Band,
    BrokerOutcome,
    Change,
    GoalOutcome,
    GoalScore,
    GoalState,
    LowerBounds,
    Plan,
    Skipped,
    Status,
    Summary,
)

MEANS = {
    "network_in": 4.2e7,
    "network_out": 1.3e8,
    "disk": 1.7e12,
    "cpu": 5.5,
    "replicas": 412.0,
    "leaders": 137.0,
}
TOPICS = ("orders", "payments", "clicks", "iot.telemetry", "users", "audit.log", "search-index", "shipments")
BOUND, VAR = 0.10, 0.60
KINDS: tuple[ActionType, ...] = ("move", "move", "move", "leadership", "move", "swap", "move", "exchange")
IRREDUCIBLE = (
    "irreducible in network-in: the leader of orders-0 alone is 1.38 of the mean; "
    "more partitions for topic orders would fix it"
)


def name_of(resource: str) -> str:
    return resource.replace("_", "-")


class LazyActions(Sequence[Action]):
    """Actions that are built when asked for, as the planner's are; `built` counts them."""

    def __init__(self, length: int, brokers: Sequence[int], goals: Sequence[str]) -> None:
        self.length, self.brokers, self.goals = length, brokers, goals
        self.built = 0

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> Action: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Action]: ...
    def __getitem__(self, index: int | slice) -> Action | Sequence[Action]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.length))]
        if not -self.length <= index < self.length:
            raise IndexError(index)
        self.built += 1
        return _plain_action(index % self.length, self.brokers, self.goals)

    def __iter__(self) -> Iterator[Action]:
        return (self[i] for i in range(self.length))


def _plain_action(i: int, brokers: Sequence[int], goals: Sequence[str]) -> Action:
    n = len(brokers)
    a, c, d = brokers[i % n], brokers[(i * 7 + 1) % n], brokers[(i * 11 + 2) % n]
    b = next(x for x in (brokers[(i * 13 + k + 3) % n] for k in range(n)) if x not in (a, c, d))
    kept = tuple(dict.fromkeys(x for x in (c, d) if x != a))
    low, high = 0.1 + (i % 700) / 1000.0, 0.2 + (i % 790) / 1000.0 + 1e-7 / 3
    scores = {
        g: GoalScore(0.5 + (high - low) / 2, {a: low, b: 1.0}, {a: high, b: 1.0 if k % 2 else 0.98 + i * 1e-8})
        for k, g in enumerate(goals)
    }
    change = Change(f"topic-{i // 40:04d}", i % 40, (a, *kept), (b, *kept), a, b)
    return Action(
        i + 1,
        "move",
        0.5 + (i % 999 + 1) / 5000.0,
        (),
        f"would lower network-in of broker {a} towards its band",
        (i % 97 + 1) * 52_428_800,
        (change,),
        scores,
    )


def example_plan(
    brokers: int = 12,
    actions: int = 150,
    seed: int = 7,
    *,
    storage: str = "local",
    options: Mapping[str, object] | None = None,
    irreducible: bool = True,
    goal_names: Mapping[str, str] | None = None,
    racks: Sequence[str | None] = ("a", "b", "c"),
) -> Plan:
    """A skewed cluster that would be levelled by moves, leadership transfers, swaps, exchanges and repairs.

    `goal_names` maps a resource to another goal name (default: the resource with hyphens).
    """
    r = Random(f"plan {seed} {brokers}")
    ids = list(range(1, brokers + 1))
    names = {resource: (goal_names or {}).get(resource, name_of(resource)) for resource in MEANS}
    heavy = {ids[-1]: 1.38} if irreducible else {}
    before = {b: _loads(r, spread=0.35, fixed={}) for b in ids}
    after = {b: _loads(r, spread=0.035, fixed={"network_in": heavy[b]} if b in heavy else {}) for b in ids}
    for b in heavy:
        before[b]["network_in"] = 1.62 * MEANS["network_in"]
    _level(before)
    _level(after)
    outcomes = tuple(_broker(b, racks[i % len(racks)], before[b], after[b], names) for i, b in enumerate(ids))
    steps: Sequence[Action]
    if actions > 1000:
        steps = LazyActions(actions, ids, list(names.values()))
        proposals: tuple[Change, ...] = tuple(
            Change(
                f"topic-{i:04d}",
                i % 40,
                (ids[i % brokers],),
                (ids[(i + 1) % brokers],),
                ids[i % brokers],
                None,
            )
            for i in range(min(actions, 2000))
        )
    else:
        steps = tuple(_action(r, i, actions, ids, before, after, names, storage) for i in range(actions))
        proposals = tuple(sorted((c for a in steps for c in a.changes), key=lambda c: (c.topic, c.partition)))
    moves = sum(len(c.added) for c in proposals)
    leads = sum(c.leader_before != c.leader_after for c in proposals)
    size = sum(a.bytes_to_move for a in steps) if actions <= 1000 else 7_912_345_678_901
    return Plan(
        plan_id="sha256:" + f"{r.getrandbits(256):064x}",
        cluster_id="kP9xQ2mTRXa1Zb4c",
        taken_at="2026-11-20T12:00:00Z",
        snapshot_digest="sha256:" + f"{r.getrandbits(256):064x}",
        storage=storage,
        goals_digest="sha256:" + f"{r.getrandbits(256):064x}",
        options={"seed": 0, "acceptance": "score", **(options or {})},
        actions=steps,
        proposals=proposals,
        goals=(
            *(_goal(resource, name, outcomes) for resource, name in names.items()),
            rack_goal(14, 0, "satisfied"),
        ),
        summary=Summary(len(steps), moves, leads, len(proposals), 0 if storage == "shared" else size),
        lower_bounds=LowerBounds(int(moves * 0.93), 0 if storage == "shared" else int(size * 0.88)),
        brokers=outcomes,
        skipped=(
            Skipped("goal fetch-rate", "no fetch_rate load in the snapshot"),
            Skipped("topics __*", "2 topics with 53 partitions are excluded; their load counts"),
        ),
        notes=("network_out is a lower bound: the fetch rate comes from committed consumer-group offsets",),
        bands={names[resource]: dict.fromkeys(ids, band_of(mean)) for resource, mean in MEANS.items()},
    )


def band_of(mean: float, bound: float = BOUND, var: float = VAR) -> Band:
    return Band(mean, mean * (1 - bound), mean * (1 + bound), mean * (1 - var), mean * (1 + var))


def _loads(r: Random, spread: float, fixed: Mapping[str, float]) -> dict[str, float]:
    return {
        resource: mean * fixed.get(resource, max(0.0, 1 + max(-0.95, min(1.6, r.gauss(0, spread)))))
        for resource, mean in MEANS.items()
    }


def _level(loads: dict[int, dict[str, float]]) -> None:
    """Counts are whole."""
    for of_broker in loads.values():
        for resource in ("replicas", "leaders"):
            of_broker[resource] = float(round(of_broker[resource]))


def _score(resource: str, load: float) -> float:
    mean = MEANS[resource]
    return float(distribution_score(load, mean, BOUND * mean, VAR * mean, False, 0.0))


def _broker(
    b: int,
    rack: str | None,
    before: Mapping[str, float],
    after: Mapping[str, float],
    names: Mapping[str, str],
) -> BrokerOutcome:
    scores_before = {names[x]: _score(x, before[x]) for x in MEANS}
    scores_after = {names[x]: _score(x, after[x]) for x in MEANS}
    violates = tuple(name for name, score in scores_after.items() if score < 1)
    why = None
    if violates:
        why = IRREDUCIBLE if names["network_in"] in violates else "no acceptable action would bring it closer"
    return BrokerOutcome(b, rack, "active", before, after, scores_before, scores_after, violates, why)


def _goal(resource: str, name: str, brokers: Sequence[BrokerOutcome]) -> GoalOutcome:
    states = []
    for scores, loads in (
        ((b.scores_before for b in brokers), (b.before for b in brokers)),
        (
            (b.scores_after for b in brokers),
            (b.after for b in brokers),
        ),
    ):
        out = sum(score[name] < 1 for score in scores)
        shares = [load[resource] / MEANS[resource] - 1 for load in loads]
        cv = (sum(x * x for x in shares) / len(shares)) ** 0.5
        states.append(GoalState(out, MEANS[resource], max(abs(x) for x in shares), cv, 1 - out / len(brokers)))
    before, after = states
    status: Status = "satisfied" if not after.violations else "improved"
    text = f"would fall from {before.violations} to {after.violations} brokers out of band"
    return GoalOutcome(name, "usage_distribution", False, 1.0, resource, status, before, after, text)


def rack_goal(before: int, after: int, status: Status) -> GoalOutcome:
    return GoalOutcome(
        "rack_aware",
        "rack_aware",
        True,
        0.0,
        None,
        status,
        GoalState(before, None, None, None, 1.0 if not before else 0.9),
        GoalState(after, None, None, None, 1.0 if not after else 0.95),
        "at most ceil(RF / racks) replicas of a partition in a rack",
    )


def _action(
    r: Random,
    i: int,
    total: int,
    ids: Sequence[int],
    before: Mapping[int, Mapping[str, float]],
    after: Mapping[int, Mapping[str, float]],
    names: Mapping[str, str],
    storage: str,
) -> Action:
    kind = KINDS[i % 8]
    resource = list(MEANS)[r.randrange(len(MEANS))]
    worst = sorted(ids, key=lambda b: before[b][resource] / MEANS[resource])
    a, b = worst[-1 - r.randrange(max(1, len(ids) // 3))], worst[r.randrange(max(1, len(ids) // 3))]
    if a == b:
        b = next(x for x in ids if x != a)
    topic, partition = TOPICS[i % len(TOPICS)], i // len(TOPICS)
    third = next((x for x in ids if x not in (a, b)), None)
    rest = () if third is None else (third,)
    if kind == "leadership":
        changes: tuple[Change, ...] = (Change(topic, partition, (a, b, *rest), (b, a, *rest), a, b),)
    elif kind == "swap":
        changes = (
            Change(topic, partition, (a, *rest), (b, *rest), a, b),
            Change(topic + "-v2", partition, (b, *rest), (a, *rest), b, a),
        )
    elif kind == "exchange" and third is not None:
        changes = tuple(
            Change(f"{topic}-x{k}", partition, (x,), (y,), x, y) for k, (x, y) in enumerate(((a, b), (b, third), (third, a)))
        )
    else:
        changes = (Change(topic, partition, (a, *rest), (b, *rest), a, b),)
    touched = (a, b) if kind != "exchange" else (a, b, *rest)
    now, then = i / total, (i + 1) / total
    scores = {}
    for x, name in names.items():
        at = {k: {n: _score(x, before[n][x] + (after[n][x] - before[n][x]) * k) for n in touched} for k in (now, then)}
        scores[name] = GoalScore((min(at[then].values()) - min(at[now].values()) + 1) / 2, at[now], at[then])
    repairs = ("rack_aware",) if i % 11 == 0 and kind == "move" else ()
    size = 0 if kind == "leadership" or storage == "shared" else int(10 ** r.uniform(7.5, 10.4)) * len(changes)
    reason = (
        f"would mend a rack conflict of {topic}-{partition}"
        if repairs
        else f"would bring broker {a} from {_share(before[a][resource], resource)} to "
        f"{_share(after[a][resource], resource)} of the mean in {names[resource]}"
    )
    return Action(
        i + 1,
        kind if len(changes) > 1 or kind in ("move", "leadership") else "move",
        max(0.501, sum(s.score for s in scores.values()) / len(scores)) + r.random() * 0.08,
        repairs,
        reason,
        size,
        changes,
        scores,
    )


def _share(load: float, resource: str) -> str:
    return f"{load / MEANS[resource]:.0%}"


def empty_plan(brokers: int = 12) -> Plan:
    """Every broker within range, nothing to do."""
    plan = example_plan(brokers, 0, irreducible=False)
    calm = tuple(
        replace(
            b,
            before=b.after,
            scores_before=dict.fromkeys(b.scores_after, 1.0),
            scores_after=dict.fromkeys(b.scores_after, 1.0),
            violates=(),
            why=None,
        )
        for b in plan.brokers
    )
    goals = (
        *(_goal(g.resource, g.name, calm) for g in plan.goals if g.resource),
        rack_goal(0, 0, "satisfied"),
    )
    return replace(plan, brokers=calm, goals=goals, lower_bounds=LowerBounds(0, 0))


def stuck_plan() -> Plan:
    """Brokers outside their range, and nothing that would help."""
    plan = example_plan(12, 0)
    same = tuple(
        replace(
            b,
            after=b.before,
            scores_after=b.scores_before,
            violates=tuple(n for n, s in b.scores_before.items() if s < 1),
            why="every topic on it is excluded",
        )
        for b in plan.brokers
    )
    goals = tuple(replace(_goal(g.resource, g.name, same), status="unchanged") for g in plan.goals if g.resource)
    return replace(plan, brokers=same, goals=goals, lower_bounds=LowerBounds(0, 0))


def budgeted_plan() -> Plan:
    """A plan cut to a budget."""
    plan = example_plan(12, 40, options={"max_moves": 50, "max_bytes": 250_000_000_000})
    return replace(plan, skipped=(*plan.skipped, Skipped("71 actions", "the budget of 250 GB would be exceeded")))


def infeasible_plan() -> Plan:
    """A hard goal that no placement meets."""
    plan = example_plan(12, 60)
    text = "disk of 11 brokers would need 20.4 TB, their limits hold 18.9 TB: 1.5 TB of capacity is missing"
    goal = GoalOutcome(
        "capacity-disk",
        "capacity",
        True,
        0.0,
        "disk",
        "infeasible",
        GoalState(5, None, None, None, 0.58),
        GoalState(3, None, None, None, 0.75),
        text,
    )
    return replace(plan, goals=(goal, *plan.goals))


def draining_plan() -> Plan:
    """One broker would be emptied, another is dead."""
    plan = example_plan(12, 80, options={"remove_brokers": [3], "add_brokers": [{"id": 13, "rack": "a"}]})
    zero = dict.fromkeys(MEANS, 0.0)
    brokers = list(plan.brokers)
    for row, state in ((2, "draining"), (4, "dead")):
        brokers[row] = replace(
            brokers[row], state=state, after=zero, scores_before={}, scores_after={}, violates=(), why=None
        )
    added = replace(
        brokers[0],
        id=13,
        before=zero,
        scores_before={n: _score(x, 0.0) for x, n in zip(MEANS, plan.bands, strict=True)},
        violates=(),
        why=None,
        scores_after=dict.fromkeys(plan.bands, 1.0),
    )
    bands = {name: {**of, 13: of[1]} for name, of in plan.bands.items()}
    return replace(plan, brokers=(*brokers, added), bands=bands)


def unjudged_plan() -> Plan:
    """All goals skipped."""
    plan = example_plan(3, 0)
    goals = tuple(replace(g, status="skipped", before=None, after=None, explanation="no load") for g in plan.goals)
    brokers = tuple(replace(b, scores_before={}, scores_after={}, violates=(), why=None) for b in plan.brokers)
    return replace(plan, goals=goals, brokers=brokers, bands={}, lower_bounds=LowerBounds(0, 0))


def big_plan(brokers: int = 1000, actions: int = 150_000) -> Plan:
    """As large as reports must bear."""
    return example_plan(brokers, actions, racks=tuple(f"rack-{i}" for i in range(30)))


HOSTILE = '</script><b onclick="x()">&amp;\'|`*[red]'


def hostile_plan() -> Plan:
    """User text that would break a careless report."""
    plan = example_plan(6, 20, goal_names={"network_in": HOSTILE, "disk": "50% nan"}, racks=(HOSTILE, None))
    actions = tuple(replace(a, reason=HOSTILE + "\u2028line\n two") for a in plan.actions)
    skipped = (*plan.skipped, Skipped(HOSTILE, HOSTILE))
    return replace(plan, actions=actions, skipped=skipped, cluster_id=HOSTILE, notes=(HOSTILE,))
