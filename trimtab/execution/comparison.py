"""What a plan predicted of the loads of brokers, beside what they are afterwards.

Made by the commands after an execution, and by the service once its windows hold nothing older than its end. Loads are compared as shares
of their mean, since traffic as a whole goes up and down meanwhile. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from optimizer.plan import BrokerOutcome

Loads = Mapping[str, Mapping[int, float]]
"""Resource -> broker id -> load in the resource's unit."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One resource. Deviations are shares of the mean; `broker` is the one that differs most from what was predicted, which
    `predicted_share` and `share` of the mean tell."""

    resource: str
    before: float | None
    predicted: float
    actual: float
    broker: int
    predicted_share: float
    share: float

    def __str__(self) -> str:
        was = "" if self.before is None else f", {self.before:.0%} before"
        off = f"broker {self.broker} has {self.share:.0%} of the mean, not {self.predicted_share:.0%}"
        tail = "" if abs(self.share - self.predicted_share) < 0.005 else f"; {off}"
        return f"{self.resource}: at most {self.actual:.0%} from the mean, {self.predicted:.0%} predicted{was}{tail}"


def predicted_loads(brokers: Iterable[BrokerOutcome], *, after: bool = True) -> dict[str, dict[int, float]]:
    """Loads of the active brokers of a plan, after it or before."""
    found: dict[str, dict[int, float]] = {}
    for broker in brokers:
        if broker.state == "active":
            for resource, load in (broker.after if after else broker.before).items():
                found.setdefault(resource, {})[broker.id] = load
    return found


def loads_of(snapshot: Snapshot, resources: Iterable[str]) -> dict[str, dict[int, float]]:
    """Loads of all brokers of a snapshot, of resources that it knows."""
    ids = snapshot.broker_ids.tolist()
    known = [r for r in resources if snapshot.is_reported(r)]
    return {r: dict(zip(ids, snapshot.broker_load(r).tolist(), strict=True)) for r in known}


def compared(predicted: Loads, actual: Loads, before: Loads | None = None) -> tuple[Compared, ...]:
    """Each resource of which both tell, in the order of `predicted`; without those whose mean is 0."""
    found = []
    for resource, of in predicted.items():
        there = actual.get(resource, {})
        brokers = sorted(of.keys() & there.keys())
        shares, now = _shares(of, brokers), _shares(there, brokers)
        if not shares or not now:
            continue
        was = _shares((before or {}).get(resource, {}), brokers)
        worst = max(range(len(brokers)), key=lambda i: (abs(now[i] - shares[i]), -i))
        deviations = _deviation(was), _deviation(shares) or 0.0, _deviation(now) or 0.0
        found.append(Compared(resource, *deviations, brokers[worst], shares[worst], now[worst]))
    return tuple(found)


def _shares(loads: Mapping[int, float], brokers: Sequence[int]) -> list[float]:
    """Of each broker, load over mean; empty where that is not known of all."""
    if not brokers or any(b not in loads for b in brokers):
        return []
    mean = sum(loads[b] for b in brokers) / len(brokers)
    return [loads[b] / mean for b in brokers] if mean > 0 else []


def _deviation(shares: Sequence[float]) -> float | None:
    return max(abs(s - 1.0) for s in shares) if shares else None
