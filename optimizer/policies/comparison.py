"""Two sets of assignments, one file a topic, held against each other: the checks that a minimal rebalance has to pass.

Called by `trimtab check`. Pure. Source: the published rebalance's own tests; bounds are ours where it gives none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cluster_model.errors import InputError, Problem
from cluster_model.reassignment import reassignment_entries

Assignment = Mapping[int, tuple[int, ...]]
"""Partition -> brokers, preferred leader first."""

SHOWN = 5  # examples of what is wrong, for each check


@dataclass(frozen=True)
class Check:
    """One check: its id, what it asks, whether it holds, and what was found."""

    id: str
    asks: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Comparison:
    """All checks, and what the migration does."""

    checks: tuple[Check, ...]
    topics: int
    partitions: int
    replica_moves: int
    reordered: int  # partitions with the same brokers in another order

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)


def read_assignment(text: str, name: str) -> dict[str, dict[int, tuple[int, ...]]]:
    """Topic -> assignment out of Kafka's reassignment document; `name` is what messages call it.

    Raises
    ------
    InputError
        Not such a document; carries every problem with its place.
    """
    problems: list[Problem] = []
    result: dict[str, dict[int, tuple[int, ...]]] = {}
    for place, entry, wrong in reassignment_entries(text, name, "give a file of `trimtab plan --per-topic-dir`"):
        if wrong is None and entry["partition"] in result.get(entry["topic"], {}):
            wrong = f"expected each partition once, found {entry['topic']}-{entry['partition']} twice; keep one"
        if wrong is not None:
            problems.append(Problem(place, wrong))
        else:
            result.setdefault(entry["topic"], {})[entry["partition"]] = tuple(entry["replicas"])
    if problems:
        raise InputError(name, problems)
    return result


def compare(
    original: Mapping[str, Assignment], migrated: Mapping[str, Assignment], *, replica_spread: int = 1, leader_spread: int = 1
) -> Comparison:
    """Hold two sets of assignments (topic -> assignment) against each other."""
    both = [(t, p, old, migrated[t][p]) for t in sorted(original) for p, old in sorted(original[t].items()) if p in migrated.get(t, {})]
    replaced = [(f"{t}-{p}", len(set(old) - set(new))) for t, p, old, new in both]
    brokers = {b for t in original.values() for replicas in t.values() for b in replicas}
    checks = (
        _check("WIX-1", "at most one broker of a partition is replaced", [f"{n} ({k})" for n, k in replaced if k > 1]),
        _check("WIX-2", "both have the same topics", [*sorted(original.keys() ^ migrated.keys())]),
        _check("WIX-3", "every topic has the same partitions", _other_partitions(original, migrated)),
        _check("WIX-4", "replication factors stay, and no broker is twice in a list", _other_lists(both)),
        Check("WIX-5", "there are topics and brokers", bool(original) and bool(brokers), f"{len(original)} topics, {len(brokers)} brokers"),
        _spread("WIX-6", "leader counts", leader_spread, _counted(migrated, brokers, leaders=True)),
        _spread("WIX-7", "replica counts", replica_spread, _counted(migrated, brokers, leaders=False)),
    )
    return Comparison(
        checks, len(original), len(both), sum(k for _, k in replaced), sum(set(o) == set(n) and o != n for _, _, o, n in both)
    )


def _check(name: str, asks: str, wrong: list[str]) -> Check:
    more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return Check(name, asks, not wrong, f"{', '.join(wrong[:SHOWN])}{more}" if wrong else "all of them")


def _other_partitions(original: Mapping[str, Assignment], migrated: Mapping[str, Assignment]) -> list[str]:
    return [f"{t}-{p}" for t in sorted(original.keys() & migrated.keys()) for p in sorted(original[t].keys() ^ migrated[t].keys())]


def _other_lists(both: Iterable[tuple[str, int, tuple[int, ...], tuple[int, ...]]]) -> list[str]:
    return [f"{t}-{p}" for t, p, old, new in both if len(old) != len(new) or len(set(new)) != len(new)]


def _counted(of: Mapping[str, Assignment], brokers: Iterable[int], *, leaders: bool) -> Counter[int]:
    """Replicas, or preferred leaders, of every broker; those that had some and have none count as 0."""
    counts: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    for assignment in of.values():
        for replicas in assignment.values():
            counts.update(replicas[:1] if leaders else replicas)
    return counts


def _spread(name: str, what: str, allowed: int, counts: Counter[int]) -> Check:
    low, high = (min(counts.values()), max(counts.values())) if counts else (0, 0)
    found = f"{low} to {high} (brokers {_who(counts, low)} and {_who(counts, high)})" if low < high else f"{low} each"
    found = found if counts else "no brokers"
    return Check(name, f"{what} of brokers are within {allowed} of each other", bool(counts) and high - low <= allowed, found)


def _who(counts: Counter[int], count: int) -> str:
    return str(min(b for b, n in counts.items() if n == count))
