"""What-ifs: the cluster as the caller wants it imagined, before anything is planned.

Called by the planner, by `explain` and by the commands. Pure; the snapshot given is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import translate

import numpy as np

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.resources import LARGEST_AMOUNT, LEAST_AMOUNT
from cluster_model.snapshot import BoolArray, BrokerState, Snapshot
from goals.model import Constraints, GoalSet, TopicMinimum
from optimizer.capacity import with_capacity
from optimizer.options import PlanOptions
from optimizer.unknown import unsized

REMOVING = "--remove-broker"
MOST_NAMED = 20  # brokers of a cluster, to an operator who asks for another


def matching_topics(topics: tuple[str, ...], patterns: Iterable[str]) -> BoolArray:
    """bool [T], topics that match any of the glob patterns (case matters)."""
    found = np.zeros(len(topics), np.bool_)
    for pattern in patterns:
        matches = re.compile(translate(pattern)).match
        found |= np.fromiter((matches(name) is not None for name in topics), dtype=np.bool_, count=len(topics))
    return found


def movable_topics(snapshot: Snapshot, constraints: Constraints, options: PlanOptions) -> BoolArray:
    """bool [T], topics whose partitions may change for balance."""
    return may_change(snapshot.topics, constraints) & ~matching_topics(snapshot.topics, options.exclude_topics)


def may_change(topics: tuple[str, ...], constraints: Constraints) -> BoolArray:
    """bool [T], topics that the constraints of goals let change for balance."""
    excluded = matching_topics(topics, (*constraints.exclude_topics, *constraints.freeze_topics))
    if constraints.include_topics:
        excluded |= ~matching_topics(topics, constraints.include_topics)
    return ~excluded


def apply_whatifs(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> Snapshot:
    """The snapshot with brokers added, drained and excluded and loads scaled as `options` and the goals'
    constraints say, and with the capacities of the goals' calibration where it has none.

    What is so already stays so: a broker to add that is there, one to remove that is excluded, a pattern that matches nothing.
    So a plan can be made again on the state after it; what a person asks for goes through `check_whatifs` first.

    Raises
    ------
    ConfigurationError
        A broker to remove or exclude that is not in the snapshot, a broker to add that is there with another rack, a
        pattern to scale that matches no topic, a factor that is not a positive number, loads scaled beyond all measure; all at
        once.
    """
    _refuse(goals, _problems(snapshot, options), _constraint_problems(snapshot, goals, options))
    if options.loads is not None:
        snapshot = options.loads.applied(snapshot)
    snapshot = _with_added(with_capacity(snapshot, goals), options)
    states = snapshot.broker_states.copy()
    for broker in options.remove_brokers:
        row = snapshot.row_of_broker[broker]
        if states[row] == BrokerState.ACTIVE:
            states[row] = BrokerState.DRAINING
    for broker in (*goals.constraints.exclude_brokers, *options.exclude_brokers):
        if broker in snapshot.row_of_broker:
            states[snapshot.row_of_broker[broker]] = BrokerState.EXCLUDED
    if not np.array_equal(states, snapshot.broker_states):
        snapshot = replace(snapshot, broker_states=states)
    return _with_scaled_load(snapshot, options)


def check_whatifs(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, removing: str = REMOVING) -> None:
    """Refuse what-ifs that would do nothing or contradict each other, beside what `apply_whatifs` refuses.

    Parameters
    ----------
    removing
        The option that named the brokers to remove.

    Raises
    ------
    ConfigurationError
        As `apply_whatifs`, and: a broker to add that is there, a broker to remove or demote that is excluded, by its state, an
        option or the goals' constraints, brokers to remove that leave no active one, a pattern of topics to exclude that matches none, a
        budget in bytes where sizes are unknown; all at once.
    """
    problems = [*_problems(snapshot, options), *_idle_problems(snapshot, goals, options)] or _no_broker_left(snapshot, goals, options)
    problems = [replace(p, place=removing) if p.place == REMOVING else p for p in problems]
    _refuse(goals, problems, _constraint_problems(snapshot, goals, options))


def idle_patterns(snapshot: Snapshot, goals: GoalSet) -> tuple[str, ...]:
    """A note for each pattern of the constraints, or of a goal, that matches no topic; internal topics (``__*``) may be absent."""
    told = []
    lists = {f"constraints.{key}": getattr(goals.constraints, key) for key in ("exclude_topics", "freeze_topics", "include_topics")}
    lists |= {f"goal {goal.name}": goal.topics for goal in goals.goals if isinstance(goal, TopicMinimum)}
    for place, patterns in lists.items():
        for pattern in patterns:
            if not pattern.startswith("__") and not any(map(re.compile(translate(pattern)).match, snapshot.topics)):
                told.append(f"{place}: no topic matches {pattern!r}")
    return tuple(told)


def _refuse(goals: GoalSet, of_options: list[Problem], of_goals: list[Problem]) -> None:
    """Raise for problems of options and of the goals file, each under its own name."""
    if of_options and of_goals:
        named = [Problem(f"{goals.source}, {p.place}", p.message) for p in of_goals]
        raise ConfigurationError("options and goals", [*of_options, *named])
    if of_options:
        raise ConfigurationError("options", of_options)
    if of_goals:
        raise ConfigurationError(goals.source or "goals", of_goals)


def _constraint_problems(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> list[Problem]:
    known = {*snapshot.row_of_broker, *(b.id for b in options.add_brokers)}
    named = [("exclude_brokers", broker) for broker in goals.constraints.exclude_brokers]
    named += [(f"broker_sets[{i}].brokers", broker) for i, one in enumerate(goals.constraints.broker_sets) for broker in one.brokers]
    unknown = dict.fromkeys((place, broker) for place, broker in named if broker not in known)
    return [Problem(f"constraints.{place}", no_broker(snapshot, broker)) for place, broker in unknown]


def no_broker(snapshot: Snapshot, broker: int) -> str:
    """What to say to an operator who asks for a broker that is not there."""
    ids = ", ".join(str(b) for b in snapshot.broker_ids[:MOST_NAMED])
    more = snapshot.broker_count - MOST_NAMED
    return f"no broker {broker} in the snapshot; it has {ids}" + (f" and {more:,} more" if more > 0 else "")


def no_topic(snapshot: Snapshot, pattern: str, give: str | None = None) -> str:
    """What to say to a person whose pattern matches no topic, or whose name is of none, where only a name will do: then `give` says what to
    give."""
    near = get_close_matches(pattern, snapshot.topics, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else give or "give a topic's name, or a pattern such as 'logs-*'"
    return f"no topic matches {pattern!r}; {remedy}" if give is None else f"no topic {pattern!r} in the snapshot; {remedy}"


def _problems(snapshot: Snapshot, options: PlanOptions) -> list[Problem]:
    known = snapshot.row_of_broker
    added = {broker.id for broker in options.add_brokers}
    problems = []
    for broker in options.add_brokers:
        row = known.get(broker.id)
        if row is not None and broker.rack is not None and snapshot.racks[row] != broker.rack:
            message = f"the snapshot has broker {broker.id} in rack {snapshot.racks[row]}; choose an id that is free"
            problems.append(Problem("--add-broker", message))
        if not 0 <= broker.id <= 2**31 - 1:
            problems.append(Problem("--add-broker", f"expected a broker id of 0 or more, found {broker.id}"))
    if len(added) != len(options.add_brokers):
        problems.append(Problem("--add-broker", "a broker is added twice; name each once"))
    for option, brokers in (
        (REMOVING, options.remove_brokers),
        ("--exclude-broker", options.exclude_brokers),
        ("--demote-broker", options.demote_brokers),
    ):
        for wanted in dict.fromkeys(brokers):
            if wanted not in known and wanted not in added:
                problems.append(Problem(option, no_broker(snapshot, wanted)))
    if options.demote_brokers and options.replication_factor:
        message = "expected no --replication-factor beside it: each is a plan of its own; plan one, then the other"
        problems.append(Problem("--demote-broker", message))
    for pattern, factor in options.scale_load:
        if not (np.isfinite(factor) and factor > 0):
            problems.append(Problem("--scale-load", f"expected a factor above 0, found {factor} for {pattern}"))
        if not matching_topics(snapshot.topics, (pattern,)).any():
            problems.append(Problem("--scale-load", no_topic(snapshot, pattern)))
    return problems or _scaled_too_far(snapshot, options)


def _scaled_too_far(snapshot: Snapshot, options: PlanOptions) -> list[Problem]:
    if not options.scale_load:
        return []
    if options.loads is not None:
        snapshot = options.loads.applied(snapshot)
    scaled = _with_scaled_load(snapshot, options)
    return [
        Problem("--scale-load", f"expected loads of at most {LARGEST_AMOUNT:g}, found {most:.3g} for {name}; check the factors")
        for name, values in scaled.leader_load.items()
        if (most := max(_most(values), _most(scaled.follower_load.get(name)))) > LARGEST_AMOUNT
    ]


def _most(values: np.ndarray | None) -> float:
    given = values[~np.isnan(values)] if values is not None else np.zeros(0)
    return float(given.max()) if len(given) else 0.0


def _no_broker_left(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> list[Problem]:
    if not options.remove_brokers:
        return []
    active = {int(b) for b in snapshot.broker_ids[snapshot.broker_states == BrokerState.ACTIVE]} | {b.id for b in options.add_brokers}
    if active - {*options.remove_brokers, *options.exclude_brokers, *goals.constraints.exclude_brokers}:
        return []
    message = "expected fewer than all active brokers: none would be left to take their replicas; leave one out, or add brokers first"
    return [Problem(REMOVING, message)]


def _idle_problems(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> list[Problem]:
    known = snapshot.row_of_broker
    problems = []
    new = {added.id for added in options.add_brokers}
    for added in options.add_brokers:
        row = known.get(added.id)
        if row is not None and added.rack in (None, snapshot.racks[row]):
            message = f"broker {added.id} is in the snapshot already; choose an id that is free"
            problems.append(Problem("--add-broker", message))
    asked = [(REMOVING, "emptied", broker) for broker in dict.fromkeys(options.remove_brokers)]
    asked += [("--demote-broker", "demoted", broker) for broker in dict.fromkeys(options.demote_brokers)]
    for option, done, broker in asked:
        row = known.get(broker)
        if row is None and broker not in new:
            continue  # that it is not there is told
        if broker in options.exclude_brokers:
            why = "--exclude-broker says that it stays as it is; leave one out"
        elif broker in goals.constraints.exclude_brokers:
            why = f"constraints.exclude_brokers in {goals.source or 'the goals'} says that it stays as it is; drop one"
        elif row is not None and snapshot.broker_states[row] == BrokerState.EXCLUDED:
            why = "it is excluded in the snapshot, so nothing may leave it; change its state there"
        else:
            continue
        problems.append(Problem(option, f"broker {broker} cannot be {done}: {why}"))
    lacking = int(np.count_nonzero(unsized(snapshot)))
    if options.max_bytes is not None and lacking:
        message = (
            f"the size of {lacking:,} of {snapshot.partition_count:,} partitions is unknown, so a budget in bytes cannot be kept; "
            "give leader_load.disk for all of them, or use --max-moves"
        )
        problems.append(Problem("--max-bytes", message))
    for pattern in options.exclude_topics:
        if not matching_topics(snapshot.topics, (pattern,)).any():
            problems.append(Problem("--exclude-topic", no_topic(snapshot, pattern)))
    return problems


def _with_added(snapshot: Snapshot, options: PlanOptions) -> Snapshot:
    new = [broker for broker in options.add_brokers if broker.id not in snapshot.row_of_broker]
    if not new:
        return snapshot
    ids = np.concatenate([snapshot.broker_ids, np.array([b.id for b in new], dtype=np.int32)])
    order = np.argsort(ids, kind="stable")
    row_of_old = np.empty(len(order), dtype=np.int32)
    row_of_old[order] = np.arange(len(order), dtype=np.int32)

    def moved(rows: np.ndarray) -> np.ndarray:
        return np.where(rows >= 0, row_of_old[np.maximum(rows, 0)], np.int32(-1)).astype(np.int32)

    racks = (*snapshot.racks, *(b.rack for b in new))
    states = np.concatenate([snapshot.broker_states, np.zeros(len(new), dtype=np.int8)])
    return replace(
        snapshot,
        broker_ids=ids[order],
        broker_states=states[order],
        racks=tuple(racks[i] for i in order),
        capacity={
            resource: np.concatenate([values, _capacity_of_new(values, len(new))])[order]
            for resource, values in snapshot.capacity.items()
        },
        replicas=moved(snapshot.replicas),
        leader=moved(snapshot.leader),
    )


def _capacity_of_new(values: np.ndarray, count: int) -> np.ndarray:
    """Capacity of an imagined broker: the median of those there are, NaN where none has one."""
    given = values[~np.isnan(values)]
    typical = float(np.quantile(given, 0.5, method="lower")) if len(given) else np.nan
    return np.full(count, typical)


def _with_scaled_load(snapshot: Snapshot, options: PlanOptions) -> Snapshot:
    for pattern, factor in options.scale_load:
        hit = matching_topics(snapshot.topics, (pattern,))[snapshot.partition_topic]
        scale = np.where(hit, factor, 1.0)
        snapshot = replace(
            snapshot,
            leader_load={name: _scaled(values, scale) for name, values in snapshot.leader_load.items()},
            follower_load={name: _scaled(values, scale) for name, values in snapshot.follower_load.items()},
        )
    return snapshot


def _scaled(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Loads times factors; what gets too small to be an amount is 0."""
    with np.errstate(over="ignore", under="ignore"):
        product = values * scale
    return np.where(product < LEAST_AMOUNT, 0.0, product)
