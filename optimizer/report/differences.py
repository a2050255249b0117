"""Two snapshots, or two plans, in words: which brokers, topics, replicas, leaders, loads and goals differ.

Called by the command line. Pure functions; the lines are for people, and name a few examples of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cluster_model.directories import Directory
from cluster_model.plain_text import one_line
from cluster_model.quantities import told_apart
from cluster_model.resources import MEASURED
from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import GoalSet
from optimizer.identity import identified
from optimizer.judgement import judge
from optimizer.outcome import goal_state
from optimizer.plan import Change, Plan
from optimizer.report.json_form import value_text
from optimizer.report.labels import goal_labels, labels_of
from optimizer.report.survey import partition_name, route
from optimizer.report.units import amount, count, listing, percent, size

MOST_LINES = 20  # of one kind
EXAMPLES = 3
SIZES = ("max_bytes", "move_cost")  # options in bytes
NOISE = 0.001  # of a load: a smaller difference is not told


class Section(NamedTuple):
    title: str
    lines: tuple[str, ...]


def as_text(sections: Iterable[Section]) -> str:
    """Sections that have lines, each under its title; one sentence where none has."""
    told = [s for s in sections if s.lines]
    if not told:
        return "No difference.\n"
    return "\n".join("\n".join([s.title, *(f"  {one_line(line)}" for line in s.lines)]) + "\n" for s in told)


def snapshot_differences(one: Snapshot, two: Snapshot, goals: GoalSet) -> list[Section]:
    """From snapshot `one` to `two`; goals as `goals` judge both."""
    head = []
    if one.cluster_id != two.cluster_id:
        head.append(_other_cluster(one.cluster_id, two.cluster_id))
    if one.storage != two.storage:
        head.append(f"storage: {one.storage} → {two.storage}")
    return [
        Section("Cluster", tuple(head)),
        Section("Brokers", _cut(_brokers(one, two))),
        Section("Topics", _cut(_topics(one, two))),
        Section("Replicas and leaders", _placement(one, two)),
        Section("Load", _cut(_loads(one, two))),
        Section("Goals", tuple(_judged(one, two, goals))),
    ]


def plan_differences(one: Plan, two: Plan) -> list[Section]:
    """From plan `one` to `two`."""
    if identified(one).plan_id == identified(two).plan_id:
        return []
    a, b = {(c.topic, c.partition): c for c in one.proposals}, {(c.topic, c.partition): c for c in two.proposals}
    made = []
    if one.cluster_id != two.cluster_id:
        made.append(_other_cluster(one.cluster_id, two.cluster_id))
    if one.snapshot_digest != two.snapshot_digest:
        made.append(f"snapshot: {one.taken_at or 'an unknown time'} → {two.taken_at or 'an unknown time'}")
    if one.goals_digest != two.goals_digest:
        made.append("goals: another goals file")
    for key in dict.fromkeys((*one.options, *two.options)):
        given, then = one.options.get(key), two.options.get(key)
        if given != then:
            made.append(f"{key}: {_said(key, given)} → {_said(key, then)}")
    same = sum(key in b and _same(change, b[key]) for key, change in a.items())
    return [
        Section("Made from", tuple(made)),
        Section("Effort", tuple(_effort(one, two))),
        Section(
            "Changes",
            (
                *_some("only in the first", [c for key, c in a.items() if key not in b]),
                *_some("only in the second", [c for key, c in b.items() if key not in a]),
                *_some("in both, with another result", [c for key, c in b.items() if key in a and not _same(a[key], c)]),
                *([f"{count(same, 'partition')} in both, with the same result"] if same else []),
            ),
        ),
        Section("Goals after the plan", tuple(_goals_of_plans(one, two))),
        Section("Brokers outside a target range after the plan", tuple(_outside(one, two))),
    ]


def _other_cluster(one: str, two: str) -> str:
    warning = ". These are two clusters: brokers and topics of equal names are compared, but are not the same" if one and two else ""
    return f"cluster: {one or 'unnamed'} → {two or 'unnamed'}{warning}"


def _cut(lines: list[str]) -> tuple[str, ...]:
    rest = len(lines) - MOST_LINES
    return (*lines[:MOST_LINES], *([f"and {rest:,} more"] if rest > 0 else []))


def _brokers(one: Snapshot, two: Snapshot) -> list[str]:
    a, b = one.row_of_broker, two.row_of_broker
    lines = [f"broker {x} was added ({_rack(two, b[x])})" for x in sorted(b.keys() - a.keys())]
    lines += [f"broker {x} is gone ({_rack(one, a[x])})" for x in sorted(a.keys() - b.keys())]
    for x in sorted(a.keys() & b.keys()):
        states = [BrokerState(int(s.broker_states[s.row_of_broker[x]])).label for s in (one, two)]
        racks = [_rack(one, a[x]), _rack(two, b[x])]
        changed = [f"{p} → {q}" for p, q in (states, racks) if p != q]
        for resource in dict.fromkeys((*one.capacity, *two.capacity)):
            p, q = (_capacity(s, resource, x) for s in (one, two))
            if p != q:
                changed.append(f"capacity of {resource} {p} → {q}")
        changed += _log_directories(*({d.path: d for d in s.directories.get(x, ())} for s in (one, two)))
        if changed:
            lines.append(f"broker {x}: {'; '.join(changed)}")
    return lines


def _log_directories(one: Mapping[str, Directory], two: Mapping[str, Directory]) -> list[str]:
    """What is told of the log directories of one broker, by path."""
    changed = [f"log directory {path} was added" for path in two if path not in one]
    changed += [f"log directory {path} is gone" for path in one if path not in two]
    for path in one.keys() & two.keys():
        p, q = one[path], two[path]
        if p.size != q.size:
            changed.append(f"size of log directory {path} {size(p.size)} → {size(q.size)}")
        if abs(p.used - q.used) > NOISE * q.size:
            then, now = told_apart(p.used / p.size, q.used / q.size)
            changed.append(f"log directory {path} {then} → {now} full")
    return sorted(changed)


def _rack(snapshot: Snapshot, row: int) -> str:
    name = snapshot.racks[row]
    return "no rack" if name is None else f"rack {name}"


def _capacity(snapshot: Snapshot, resource: str, broker: int) -> str:
    values = snapshot.capacity.get(resource)
    value = float("nan") if values is None else float(values[snapshot.row_of_broker[broker]])
    return "unknown" if np.isnan(value) else amount(value, resource)


def _topics(one: Snapshot, two: Snapshot) -> list[str]:
    a, b = (
        dict(zip(s.topics, np.bincount(s.partition_topic, minlength=len(s.topics)).tolist(), strict=True)) for s in (one, two)
    )
    lines = [f"topic {t} was added ({count(b[t], 'partition')})" for t in sorted(b.keys() - a.keys())]
    lines += [f"topic {t} is gone ({count(a[t], 'partition')})" for t in sorted(a.keys() - b.keys())]
    return lines + [f"topic {t}: {a[t]:,} → {count(b[t], 'partition')}" for t in sorted(a.keys() & b.keys()) if a[t] != b[t]]


def _placement(one: Snapshot, two: Snapshot) -> tuple[str, ...]:
    names = {name: row for row, name in enumerate(sorted({*one.topics, *two.topics}))}
    keys = []
    for s in (one, two):
        rows = np.array([names[t] for t in s.topics], np.int64)
        keys.append(rows[s.partition_topic] * 2**31 + s.partition_number if s.partition_count else np.zeros(0, np.int64))
    _, rows_one, rows_two = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    slots = max(one.replicas.shape[1], two.replicas.shape[1])
    before, after = _lists(one, rows_one, slots), _lists(two, rows_two, slots)
    came = ((after[:, :, None] != before[:, None, :]).all(axis=2) & (after >= 0)).sum(axis=1)
    factor = (before >= 0).sum(axis=1) != (after >= 0).sum(axis=1)
    leads = [np.where(s.leader[r] >= 0, s.broker_ids[s.leader[r]], -1) for s, r in ((one, rows_one), (two, rows_two))]

    def told(rows: np.ndarray, words: str, show: Callable[[int], str]) -> list[str]:
        if not len(rows):
            return []
        return [f"{words}: {', '.join(show(int(r)) for r in rows[:EXAMPLES])}{', …' if len(rows) > EXAMPLES else ''}"]

    def list_of(row: int) -> str:
        return f"{one.partition_name(int(rows_one[row]))} {_ids(before[row])} → {_ids(after[row])}"

    def leader_of(row: int) -> str:
        p, q = ("none" if x < 0 else str(x) for x in (leads[0][row], leads[1][row]))
        return f"{one.partition_name(int(rows_one[row]))} {p} → {q}"

    paths: dict[str, int] = {}
    held = [_directories(s, r, slots, paths) for s, r in ((one, rows_one), (two, rows_two))]
    first, then = held[0][:, :, None], held[1][:, None, :]
    other = (before[:, :, None] == after[:, None, :]) & (first >= 0) & (then >= 0) & (first != then)

    def directory_of(row: int) -> str:
        (p, q), names = np.argwhere(other[row])[0], list(paths)
        name = one.partition_name(int(rows_one[row]))
        return f"{name} on broker {before[row, p]} {names[held[0][row, p]]} → {names[held[1][row, q]]}"

    shifted = np.flatnonzero(other.any(axis=(1, 2)))
    moved, led = np.flatnonzero(came > 0), np.flatnonzero(leads[0] != leads[1])
    ordered = np.flatnonzero((came == 0) & ~factor & (before != after).any(axis=1))
    return (
        *told(moved, f"{count(int(came.sum()), 'replica')} on other brokers, of {count(len(moved), 'partition')}", list_of),
        *told(np.flatnonzero(factor), f"{count(int(factor.sum()), 'partition')} with another number of replicas", list_of),
        *told(ordered, f"{count(len(ordered), 'partition')} with another order of replicas", list_of),
        *told(led, f"{count(len(led), 'partition')} with another leader", leader_of),
        *told(shifted, f"{count(int(other.sum()), 'replica')} in other log directories", directory_of),
    )


def _lists(snapshot: Snapshot, rows: np.ndarray, slots: int) -> np.ndarray:
    """int64 [n, slots]: broker ids of each partition's replicas, -1 beyond."""
    lists = np.full((len(rows), slots), -1, np.int64)
    given = snapshot.replicas[rows]
    lists[:, : given.shape[1]] = np.where(given >= 0, snapshot.broker_ids[given], -1)
    return lists


def _directories(snapshot: Snapshot, rows: np.ndarray, slots: int, paths: dict[str, int]) -> np.ndarray:
    """int64 [n, slots]: number in `paths` of the log directory that holds each replica, -1 where it is not known. Adds to `paths`."""
    found = np.full((len(rows), slots), -1, np.int64)
    if snapshot.replica_directory is None:
        return found
    most = max(map(len, snapshot.directories.values()), default=0)
    table = np.full((snapshot.broker_count, most + 1), -1, np.int64)
    for broker, of in snapshot.directories.items():
        table[snapshot.row_of_broker[broker], : len(of)] = [paths.setdefault(d.path, len(paths)) for d in of]
    brokers, at = snapshot.replicas[rows], snapshot.replica_directory[rows]
    found[:, : brokers.shape[1]] = np.where((brokers >= 0) & (at >= 0), table[brokers, at], -1)
    return found


def _ids(row: np.ndarray) -> str:
    return f"[{', '.join(str(b) for b in row.tolist() if b >= 0)}]"


def _loads(one: Snapshot, two: Snapshot) -> list[str]:
    lines = []
    for resource in MEASURED:
        known = [s.is_reported(resource) for s in (one, two)]
        if known[0] != known[1]:
            lines.append(f"{resource}: {'unknown' if not known[0] else 'known'} → {'unknown' if not known[1] else 'known'}")
        if not all(known):
            continue
        a, b = one.broker_load(resource), two.broker_load(resource)
        p, q = float(a.sum()), float(b.sum())
        by_id = {int(x): float(y) for x, y in zip(one.broker_ids, a, strict=True)}
        change = {int(x): float(y) - by_id.get(int(x), 0.0) for x, y in zip(two.broker_ids, b, strict=True)}
        most = sorted(change, key=lambda x: (-abs(change[x]), x))[:EXAMPLES]
        if abs(p - q) <= NOISE * max(p, q) and all(abs(change[x]) <= NOISE * max(p, q) for x in most):
            continue
        share = f" ({percent(q / p - 1, signed=True)})" if p > 0 else ""
        brokers = ", ".join(
            f"broker {x} {'+' if change[x] >= 0 else ''}{amount(change[x], resource)}" for x in most if abs(change[x]) > NOISE * max(p, q)
        )
        lines.append(f"{resource}: {amount(p, resource)} → {amount(q, resource)}{share}" + (f"; most at {brokers}" if brokers else ""))
    return lines


def _judged(one: Snapshot, two: Snapshot, goals: GoalSet) -> list[str]:
    standing: list[dict[str, int | None]] = []
    for snapshot in (one, two):
        found = judge(snapshot, goals)
        rows = {g.name: i for i, g in enumerate(found.compiled.goals)}
        standing.append(
            {g.name: goal_state(found.compiled, found.state, rows[g.name]).violations if g.name in rows else None for g in goals.goals}
        )
    labels = labels_of(standing[0])
    return [
        f"{labels[name]}: {_outside_words(before)} → {_outside_words(standing[1][name])}"
        for name, before in standing[0].items()
        if before != standing[1][name]
    ]


def _outside_words(violations: int | None) -> str:
    if violations is None:
        return "not checked"
    return "every broker within it" if not violations else f"{count(violations, 'broker')} outside"


def _said(key: str, value: object) -> str:
    """The value of an option as a person gives it."""
    if isinstance(value, list | tuple) and all(isinstance(v, str | int) for v in value):
        return ", ".join(map(str, value)) or "none"
    if key in SIZES and isinstance(value, int | float):
        return size(value)
    return "none" if value is None else value if isinstance(value, str) else value_text(value)


def _effort(one: Plan, two: Plan) -> list[str]:
    a, b = one.summary, two.summary
    pairs = [
        (noun, f"{x:,}", f"{y:,}")
        for noun, x, y in (
            ("replica moves", a.replica_moves, b.replica_moves),
            ("leadership changes", a.leadership_changes, b.leadership_changes),
            ("partitions", a.partitions, b.partitions),
        )
    ]
    pairs.append(("bytes to copy", size(a.bytes_to_move), size(b.bytes_to_move)))
    return [f"{noun}: {x} → {y}" for noun, x, y in pairs if x != y]


def _same(one: Change, two: Change) -> bool:
    return (one.replicas_after, one.leader_after) == (two.replicas_after, two.leader_after)


def _some(words: str, changes: Sequence[Change]) -> list[str]:
    if not changes:
        return []
    shown = "; ".join(f"{partition_name(c)} {route(c)}" for c in changes[:EXAMPLES])
    return [f"{count(len(changes), 'partition')} {words}: {shown}{'; …' if len(changes) > EXAMPLES else ''}"]


def _goals_of_plans(one: Plan, two: Plan) -> list[str]:
    a, b = ({g.name: g for g in p.goals} for p in (one, two))
    labels = {**goal_labels(one), **goal_labels(two)}
    lines = []
    for name in dict.fromkeys((*a, *b)):
        words = [
            "no such goal" if g is None else "not checked" if g.after is None else f"{g.status}, {_outside_words(g.after.violations)}"
            for g in (a.get(name), b.get(name))
        ]
        if words[0] != words[1]:
            lines.append(f"{labels[name]}: {words[0]} → {words[1]}")
    return lines


def _outside(one: Plan, two: Plan) -> list[str]:
    a, b = ({x.id for x in p.brokers if x.violates} for p in (one, two))
    return [
        f"{words}: {listing([str(x) for x in sorted(ids)])}"
        for words, ids in (("only with the first", a - b), ("only with the second", b - a))
        if ids
    ]
