"""The plan in the forms that Kafka's own tools take: reassignment, election, and one file a topic.

Called by the command line and by operators who execute with Kafka's tools. Net proposals only: the order of
actions does not appear.

Source: `kafka-reassign-partitions.sh --reassignment-json-file`, `kafka-leader-election.sh --path-to-json-
file`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from json import dumps

from cluster_model.errors import InputError, Problem
from cluster_model.snapshot import Snapshot
from optimizer.plan import Change, Plan


def to_reassignment(plan: Plan) -> str:
    """Kafka's reassignment file: every partition whose replica list would change, a new order of the same
    brokers included.
    """
    changed = (c for c in plan.proposals if c.replicas_before != c.replicas_after)
    return assignment((c.topic, c.partition, c.replicas_after) for c in changed)


def to_rollback(plan: Plan) -> str:
    """Kafka's reassignment file that takes a carried out plan back: the replica lists before it."""
    changed = (c for c in plan.proposals if c.replicas_before != c.replicas_after)
    return assignment((c.topic, c.partition, c.replicas_before) for c in changed)


def to_election(plan: Plan) -> str:
    """Partitions for preferred leader election: those whose leader would change to another broker."""
    changed = (c for c in plan.proposals if c.leader_after is not None and c.leader_after != c.leader_before)
    rows = [f'{{"topic":{dumps(c.topic)},"partition":{c.partition}}}' for c in changed]
    return '{"partitions":[' + _rows(rows) + "]}\n"


def topic_files(plan: Plan, snapshot: Snapshot) -> dict[str, str]:
    """Complete assignments, one reassignment file a topic: relative path -> text.

    ``original/TOPIC.json`` is the snapshot as given, ``migrated/TOPIC.json`` the same with the proposals
    applied, for every topic of the snapshot; the two folders have the same file names (`file_names`), so they
    can be compared with ``diff -r``.

    Raises
    ------
    InputError
        The plan was made for another snapshot, or a topic's name cannot be a file name.
    """
    proposals = {(c.topic, c.partition): c for c in plan.proposals}
    problems = [
        Problem(
            f"topic {name!r}",
            "expected a legal topic name (letters, digits, dot, underscore, hyphen); it would be a file name",
        )
        for name in snapshot.topics
        if not is_file_name(name)
    ]
    ids = [int(b) for b in snapshot.broker_ids]
    original: dict[str, list[tuple[str, int, Sequence[int]]]] = {name: [] for name in snapshot.topics}
    migrated: dict[str, list[tuple[str, int, Sequence[int]]]] = {name: [] for name in snapshot.topics}
    rows = zip(
        snapshot.partition_topic.tolist(),
        snapshot.partition_number.tolist(),
        snapshot.replicas.tolist(),
        strict=True,
    )
    for topic_row, number, replicas in rows:
        topic = snapshot.topics[topic_row]
        given = tuple(ids[row] for row in replicas if row >= 0)
        change = proposals.pop((topic, number), None)
        if change is not None and change.replicas_before != given:
            problems.append(_stale(change, given))
        original[topic].append((topic, number, given))
        migrated[topic].append((topic, number, given if change is None else change.replicas_after))
    problems += [_stale(c, None) for c in proposals.values()]
    if problems:
        raise InputError("plan and snapshot", problems)
    files = file_names(snapshot.topics)
    texts = {f"original/{files[name]}.json": assignment(entries) for name, entries in original.items()}
    return texts | {f"migrated/{files[name]}.json": assignment(entries) for name, entries in migrated.items()}


def file_names(topics: Sequence[str]) -> dict[str, str]:
    """Topic -> name of its file: its own, with ``~2``, ``~3`` … where an earlier topic differs only in case.

    So files cannot replace each other on a disk that does not tell case apart; no topic has a ``~``.
    """
    seen: Counter[str] = Counter()
    names = {}
    for topic in topics:
        folded = topic.casefold()
        seen[folded] += 1
        names[topic] = topic if seen[folded] == 1 else f"{topic}~{seen[folded]}"
    return names


def assignment(entries: Iterable[tuple[str, int, Sequence[int]]]) -> str:
    """Kafka's assignment document, one partition a line."""
    rows = [
        f'{{"topic":{dumps(topic)},"partition":{number},"replicas":[{",".join(map(str, replicas))}]}}'
        for topic, number, replicas in entries
    ]
    return '{"version":1,"partitions":[' + _rows(rows) + "]}\n"


def is_file_name(topic: str) -> bool:
    """Whether a topic's name stays within its folder (true of every name Kafka accepts)."""
    return topic not in ("", ".", "..") and not set(topic) & set("/\\\0")


def _stale(change: Change, given: Sequence[int] | None) -> Problem:
    found = "no such partition" if given is None else f"replicas {list(given)}"
    return Problem(
        f"{change.topic}-{change.partition}",
        f"the plan expects replicas {list(change.replicas_before)}, the snapshot has {found}; "
        "give the snapshot it was made from",
    )


def _rows(rows: list[str]) -> str:
    return "\n " + ",\n ".join(rows) + "\n" if rows else ""
