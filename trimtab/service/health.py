"""How well the cluster itself is, whatever goals say: replicas in sync, leaders, brokers that are down, reassignments in progress.

`health_of` is a pure function of the metadata image; `HealthWatch` remembers since when, and which brokers came back. Both are called by
`trimtab.service.metadata` in its thread; what they give is frozen, and anyone may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from cluster_model.metadata.image import BrokerEntry, MetadataImage
from goals.model import Constraints
from optimizer.whatif import may_change
from trimtab.service.views import BrokerLife

MOST_EXAMPLES = 5
UNKNOWN_MIN_ISR: Mapping[str, int] = {}
UNBOUND = Constraints()


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """One broker that is registered, or that replicas are on.

    Attributes
    ----------
    life
        ``fenced`` until it has been so for `dead_after`, then ``dead``; ``unregistered`` where only replica lists name it; ``drained``
        where it does not serve, and was to be emptied and is.
    since_ms
        Since when it is fenced, Unix ms; None where it is not, or it is unknown.
    replicas, lacking
        On it, and those of them that are out of sync, reassignments apart.
    preferred, astray
        Partitions that it is the preferred leader of, and those of them that are in `ClusterHealth.astray`.
    """

    id: int
    life: BrokerLife
    since_ms: int | None
    replicas: int
    lacking: int
    preferred: int
    astray: int


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    """The cluster at one moment; counts are partitions.

    Attributes
    ----------
    offline
        Without a leader.
    under_replicated
        With a replica out of sync that is neither added nor removed by a reassignment.
    last_copy
        Of those, with a single replica in sync.
    under_min_isr
        With fewer replicas in sync than `min.insync.replicas`, or than there are where that is less: `acks=all` is refused. Only of topics
        of which that is known.
    short_topics
        Topics with a replica out of sync, also one that is being added: of them `min.insync.replicas` has to be known.
    unread
        How many of those it is not known of.
    reassigning
        With a reassignment in progress.
    not_preferred
        Led by another than their preferred leader, though that serves and is in sync.
    astray
        Those of them that goals let change: topic and number.
    examples
        The first offline, then those under min ISR, then other under-replicated ones by name.
    """

    partitions: int = 0
    offline: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    short_topics: tuple[str, ...] = ()
    unread: int = 0
    last_copy: int = 0
    reassigning: int = 0
    not_preferred: int = 0
    astray: tuple[tuple[str, int], ...] = ()
    brokers: tuple[BrokerHealth, ...] = ()
    examples: tuple[str, ...] = ()

    def living(self, *lives: BrokerLife) -> tuple[BrokerHealth, ...]:
        """Brokers in one of these states."""
        return tuple(b for b in self.brokers if b.life in lives)


def health_of(
    image: MetadataImage, now_ms: int, dead_after_ms: int, min_isr: Mapping[str, int] = UNKNOWN_MIN_ISR,
    constraints: Constraints = UNBOUND, draining: Collection[int] = (),
) -> ClusterHealth:  # fmt: skip
    """The health of the cluster that an image describes; `min_isr` by topic, as far as it is known, what goals let change, and which
    brokers are to be emptied. O(replicas), vectorized, plus reassignments and topics whose leaders are away."""
    slots = image.live_slots()
    replicas, leader = image.replicas[slots], image.leader[slots]
    present, in_sync = replicas >= 0, image.in_sync_places[slots]
    lacking = present & ~in_sync
    for slot, (adding, removing) in image.reassigning.items():
        row = int(np.searchsorted(slots, slot))
        lacking[row] &= ~np.isin(replicas[row], (*adding, *removing))
    under, offline = lacking.any(axis=1), leader < 0
    ids = np.unique(np.concatenate([replicas[present], np.array(sorted(image.brokers), dtype=replicas.dtype)]))
    lives = {int(b): _life(image.brokers.get(int(b)), now_ms, dead_after_ms) for b in ids.tolist()}
    serving = np.array([lives[int(b)] == "serving" for b in ids.tolist()], dtype=np.bool_)
    names, topics = image.topic_names(), image.topic_row[slots]
    held, synced = present.sum(axis=1), in_sync.sum(axis=1)
    short = np.unique(topics[synced < held]).tolist()
    needed = np.zeros(len(names), dtype=np.int64)
    for row in short:
        needed[row] = min_isr.get(names[row], 0)
    starved = synced < np.minimum(needed[topics], held)
    first = replicas[:, 0]
    astray = (first != leader) & ~offline & in_sync[:, 0]
    astray[astray] = serving[np.searchsorted(ids, first[astray])]
    not_preferred = int(astray.sum())
    away, of = np.unique(topics[astray], return_inverse=True)
    astray[astray] = may_change(tuple(names[row] for row in away.tolist()), constraints)[of]

    def count(values: np.ndarray) -> list[int]:
        return [int(n) for n in np.bincount(np.searchsorted(ids, values), minlength=len(ids)).tolist()]

    hosted = count(replicas[present])
    for b, number in zip(ids.tolist(), hosted, strict=True):
        if not number and b in draining and lives[b] != "serving":
            lives[b] = "drained"
    tables = zip(ids.tolist(), hosted, count(replicas[lacking]), count(first), count(first[astray]), strict=True)
    worst = (offline, starved & ~offline, under & ~starved & ~offline)
    named = [row for rows in worst for row in np.flatnonzero(rows)[:MOST_EXAMPLES].tolist()][:MOST_EXAMPLES]
    return ClusterHealth(
        partitions=len(slots),
        offline=int(offline.sum()),
        under_replicated=int(under.sum()),
        under_min_isr=int(starved.sum()),
        short_topics=tuple(names[row] for row in short),
        unread=sum(names[row] not in min_isr for row in short),
        last_copy=int((under & (synced == 1)).sum()),
        reassigning=len(image.reassigning),
        not_preferred=not_preferred,
        astray=tuple(
            (names[row], number) for row, number in zip(topics[astray].tolist(), image.number[slots[astray]].tolist(), strict=True)
        ),
        brokers=tuple(BrokerHealth(b, lives[b], _since(image.brokers.get(b)), *counts) for b, *counts in tables),
        examples=tuple(f"{names[int(topics[row])]}-{int(image.number[slots[row]])}" for row in named),
    )


def _life(entry: BrokerEntry | None, now_ms: int, dead_after_ms: int) -> BrokerLife:
    if entry is None:
        return "unregistered"
    if entry.fenced_since_ms is not None:
        return "dead" if now_ms - entry.fenced_since_ms > dead_after_ms else "fenced"
    return "stopping" if entry.stopping else "serving"


def _since(entry: BrokerEntry | None) -> int | None:
    return None if entry is None else entry.fenced_since_ms


@dataclass(frozen=True)
class Condition:
    """The health of a cluster, and since when it is so; times are Unix ms.

    Attributes
    ----------
    since
        Of what is not well now (``offline``, ``under_replicated``, ``under_min_isr``, ``reassigning``, ``not_preferred``,
        ``astray``): since when.
    down
        Brokers that are down or gone -> since when this instance sees them so.
    catching_up
        Brokers that came back and are not in sync with all that they hold -> when they came back.
    back
        Brokers that came back and are in sync again -> since when.
    """

    health: ClusterHealth = ClusterHealth()
    since: Mapping[str, int] = field(default_factory=dict)
    down: Mapping[int, int] = field(default_factory=dict)
    catching_up: Mapping[int, int] = field(default_factory=dict)
    back: Mapping[int, int] = field(default_factory=dict)


WATCHED = ("offline", "under_replicated", "under_min_isr", "reassigning", "not_preferred", "astray")


def went_on(before: Condition, health: ClusterHealth, now_ms: int) -> Condition:
    """What is to be remembered after another look. Pure."""
    since = {what: before.since.get(what, now_ms) for what in WATCHED if getattr(health, what)}
    down = {
        b.id: before.down.get(b.id, b.since_ms if b.since_ms is not None else now_ms)
        for b in health.brokers if b.life != "serving"
    }  # fmt: skip
    catching_up, back = dict(before.catching_up), dict(before.back)
    for broker in health.brokers:
        if broker.id in down:
            catching_up.pop(broker.id, None)
            back.pop(broker.id, None)
        elif broker.id in before.down:
            catching_up[broker.id] = now_ms
        if broker.id in catching_up and not broker.lacking:
            catching_up.pop(broker.id)
            back[broker.id] = now_ms
    here = {b.id for b in health.brokers}
    return Condition(
        health, since, down, {b: t for b, t in catching_up.items() if b in here}, {b: t for b, t in back.items() if b in here}
    )


class HealthWatch:
    """Keeps the newest `Condition`; `look` is called by one thread, `condition` is for any.

    Parameters
    ----------
    every_ms
        Partitions are looked at again after so long where only they changed; brokers that come and go are seen at once.
    min_isr
        `min.insync.replicas` by topic, as far as it is known; another mapping where there is news.
    constraints
        Of the goals in force; another object where there is news.
    draining
        Brokers that are to be emptied.
    """

    def __init__(
        self, dead_after_ms: int, every_ms: int = 1_000, min_isr: Callable[[], Mapping[str, int]] = lambda: UNKNOWN_MIN_ISR,
        constraints: Callable[[], Constraints] = lambda: UNBOUND, draining: Callable[[], Collection[int]] = tuple,
    ) -> None:  # fmt: skip
        self._dead_after_ms, self._every_ms, self._min_isr, self._constraints = dead_after_ms, every_ms, min_isr, constraints
        self._draining = draining
        self._needed, self._bound, self._emptied = UNKNOWN_MIN_ISR, UNBOUND, draining()
        self._looked_ms: int | None = None
        self._dirty = True
        self._lives: Mapping[int, BrokerLife] = {}
        self.condition = Condition()

    def look(self, image: MetadataImage, changed: bool, now_ms: int) -> bool:
        """Look again, where something changed; whether it did."""
        needed, bound, emptied = self._min_isr(), self._constraints(), self._draining()
        self._dirty |= changed or needed is not self._needed or bound is not self._bound or emptied != self._emptied
        lives = {b: _life(entry, now_ms, self._dead_after_ms) for b, entry in image.brokers.items()}
        rested = self._looked_ms is None or now_ms - self._looked_ms >= self._every_ms
        if lives == self._lives and not (self._dirty and rested):
            return False
        self._lives, self._dirty, self._looked_ms = lives, False, now_ms
        self._needed, self._bound, self._emptied = needed, bound, emptied
        self.condition = went_on(self.condition, health_of(image, now_ms, self._dead_after_ms, needed, bound, emptied), now_ms)
        return True
