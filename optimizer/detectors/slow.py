"""Slow brokers: those that take long for requests, by a limit, beside their own history and beside their peers.

Called by the service at each look. Pure: the memory of the look before comes in and that for the next goes out. Source: AutoMQ's slow
broker detection (an append or a fetch pending for more than 10 s; its comparison with history and peers is not written), and Cruise
Control's slow broker finder (three times the 90th percentile of its own history, three times the median of its peers). What differs: a
broker is slow after `hits` looks in a row and for `hold` afterwards, so that it does not get back at once what it gave up; where many are
slow, the cluster is, and no broker is set apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from math import floor
from statistics import median

from cluster_model.latency import AGES, BrokerLatency
from cluster_model.snapshot import BrokerState
from cluster_model.trust import LiveSnapshot, spoken
from goals.policy import SlowBrokers

FEWEST_PEERS = 3
WORDS = {
    "produce_latency_ms": "produce requests take {} there (99th percentile of its own part)",
    "fetch_latency_ms": "fetches of consumers take {} there (99th percentile of its own part)",
    "append_pending_ms": "an append has not been done for {}",
    "fetch_pending_ms": "a fetch has not been done for {}",
}


@dataclass(frozen=True, slots=True)
class SlowBroker:
    """A broker that is set apart: why, and since when (Unix ms) it was found so."""

    id: int
    why: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Watched:
    """What is remembered of a broker: looks in a row that found it slow, the first and the last of them, and what the last one said."""

    hits: int
    since_ms: int
    seen_ms: int
    why: str
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class SlowMemory:
    """What is remembered between looks, by broker."""

    of: dict[int, Watched] = field(default_factory=dict)
    taken_ms: int = -1


@dataclass(frozen=True, slots=True)
class Slow:
    """The answer of one look.

    Attributes
    ----------
    brokers
        Set apart, by id.
    notes
        What is not done, in sentences.
    """

    brokers: tuple[SlowBroker, ...] = ()
    memory: SlowMemory = SlowMemory()
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(b.id for b in self.brokers)


def set_apart(snapshot: LiveSnapshot, slow: Slow) -> LiveSnapshot:
    """The snapshot with slow brokers excluded: none gains replicas or leaderships, and the others are levelled among themselves. Its notes
    say why."""
    if not slow.brokers and not slow.notes:
        return snapshot
    states = snapshot.broker_states.copy()
    states[[snapshot.row_of_broker[b] for b in slow.ids]] = BrokerState.EXCLUDED
    told = (f"broker {b.id} is slow and gets no replicas: {b.why}" for b in slow.brokers)
    return replace(snapshot, broker_states=states, notes=(*snapshot.notes, *told, *slow.notes))


def slow_brokers(
    rule: SlowBrokers | None, snapshot: LiveSnapshot, now_ms: int, memory: SlowMemory | None = None, excluded: Collection[int] = ()
) -> Slow:
    """Which of the active brokers are slow at `now_ms`. Stale values say nothing, and a second look at the same moment counts no hit.
    Brokers that goals exclude keep what they have, slow or not."""
    if rule is None:
        return Slow()
    active = set(snapshot.broker_ids[snapshot.broker_states == BrokerState.ACTIVE].tolist()).difference(excluded)
    fresh = [x for x in snapshot.trust.latencies if x.age_ms <= snapshot.trust.stale_after_ms]
    return slow_among(rule, fresh, active, now_ms, memory)


def slow_among(
    rule: SlowBrokers, latencies: Iterable[BrokerLatency], active: Iterable[int], now_ms: int, memory: SlowMemory | None = None
) -> Slow:
    """`slow_brokers` on latencies as they are."""
    before, here = memory or SlowMemory(), set(active)
    found = _found(rule, [x for x in latencies if x.broker in here])
    hold_ms = round(1000 * rule.hold)
    after: dict[int, Watched] = {}
    for broker in sorted(here & (found.keys() | before.of.keys())):
        was, why = before.of.get(broker), found.get(broker)
        if why is not None:
            hits = 1 if was is None or not was.hits else was.hits + (now_ms > before.taken_ms)
            since = was.since_ms if was is not None and (was.hits or was.is_slow) else now_ms
            is_slow = hits >= rule.hits or (was is not None and was.is_slow)
            after[broker] = Watched(hits, since, now_ms, why, is_slow)
        elif was is not None and was.is_slow and now_ms - was.seen_ms < hold_ms:
            after[broker] = Watched(0, was.since_ms, was.seen_ms, was.why, True)
    slow = {broker: w for broker, w in after.items() if w.is_slow}
    kept = SlowMemory(after, now_ms)
    most = max(floor(rule.most * len(here) + 1e-9), 1)
    if slow and (len(slow) > most or len(slow) == len(here)):
        named = f"broker {min(slow)} is" if len(slow) == 1 else f"brokers {', '.join(map(str, slow))} are"
        why = f"more than the {most} that policy.slow_brokers.most allows" if len(slow) > most else "and no other broker is active"
        return Slow((), kept, (f"{named} slow, {why}: none is set apart",))
    return Slow(tuple(SlowBroker(b, _told(w, now_ms, hold_ms), w.since_ms) for b, w in slow.items()), kept)


def _found(rule: SlowBrokers, latencies: list[BrokerLatency]) -> dict[int, str]:
    """Broker -> by which rule it is slow now; the first that says so."""
    of_metric: dict[str, list[float]] = defaultdict(list)
    for x in latencies:
        of_metric[x.metric].append(x.value)
    result: dict[int, str] = {}
    for x in latencies:
        limit = rule.pending if x.metric in AGES else rule.latency
        typical = median(of_metric[x.metric]) if len(of_metric[x.metric]) >= FEWEST_PEERS else None
        beside = x.metric not in AGES and x.value > 1000 * rule.floor
        why = None
        if limit is not None and x.value > 1000 * limit:
            why = f"the limit is {_ms(1000 * limit)}"
        elif rule.history is not None and beside and x.usual is not None and x.value > rule.history * x.usual:
            why = f"usual there is at most {_ms(x.usual)}"
        elif rule.peers is not None and beside and typical is not None and x.value > rule.peers * typical:
            why = f"the median of the brokers is {_ms(typical)}"
        if why is not None and x.broker not in result:
            result[x.broker] = f"{WORDS[x.metric].format(_ms(x.value))}; {why}"
    return result


def _told(watched: Watched, now_ms: int, hold_ms: int) -> str:
    if watched.hits:
        return watched.why
    ago = now_ms - watched.seen_ms
    return f"{watched.why}; that was {spoken(ago)} ago, and it counts as slow for {spoken(max(hold_ms - ago, 0))} more"


def _ms(value: float) -> str:
    return f"{value / 1000:,.3g} s" if value >= 1000 else f"{value:,.3g} ms"
