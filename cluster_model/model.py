"""The live picture of a cluster: metadata and samples in, frozen snapshots out.

A follower feeds events, a consumer of the internal topic feeds batches, and the planner takes `snapshot`s, each in a
thread of its own if it likes. No I/O, and the clock comes in by parameter. Batches are taken in whatever room
they were decoded (`ObservedBatch` is their shape), so this room needs no reporter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Lock

import numpy as np

from cluster_model.loads import Key, RawLoads, derive
from cluster_model.metadata.events import Event
from cluster_model.metadata.image import MetadataImage
from cluster_model.notes import notes_of
from cluster_model.observed import LEADER, IngestCounts, ObservedBatch
from cluster_model.placement import Partitions, Placement, Placer, Room, canonical, structure_of
from cluster_model.samples import SampleStore
from cluster_model.snapshot import BrokerState, Storage
from cluster_model.trust import NAMED, BrokerVoice, LiveSnapshot, LoadTrust, Staleness, Voice
from cluster_model.windows import LONG, NEVER, SHORT, Horizon, HorizonName


@dataclass(frozen=True, slots=True)
class ModelState:
    """How the model stands: sizes, and the time of its newest sample (-1: none yet)."""

    brokers: int
    topics: int
    partitions: int
    newest_sample_ms: int
    waiting: int
    nbytes: int
    counts: IngestCounts


class ClusterModel:
    """Loads per partition over two horizons, placement as of the newest event.

    Parameters
    ----------
    short, long
        Over what rates are averaged: for reaction, and for steady state.
    stale_after_ms
        A load or broker without a sample for longer is stale: its last known load counts, flagged.
    dead_after_ms
        A broker fenced for longer is `dead` in snapshots; before that `excluded`, since it probably restarts.
    max_ahead_ms
        Batches further in the future than this are refused: one wrong clock must not push out everyone's windows.
    max_wait_ms
        How long samples wait for metadata that places them.

    Notes
    -----
    Memory does not grow with the sample rate: for each rate and role that is reported ``8 x (windows + 2) + 8`` bytes a
    partition (104 with the default 4 + 6 windows), 16 for each gauge, about 60 for the metadata, and at most 8 MB for
    what waits. docs/model.md has the sum for a million replicas.
    """

    def __init__(
        self,
        cluster_id: str,
        *,
        storage: Storage = "local",
        short: Horizon = SHORT,
        long: Horizon = LONG,
        stale_after_ms: int = 90_000,
        dead_after_ms: int = 300_000,
        max_ahead_ms: int = 60_000,
        max_wait_ms: int = 60_000,
    ) -> None:
        self.cluster_id, self.storage = cluster_id, storage
        self.image = MetadataImage()
        self._horizons: dict[HorizonName, Horizon] = {"short": short, "long": long}
        self._stale_after_ms, self._dead_after_ms = stale_after_ms, dead_after_ms
        self._samples = SampleStore(self.image, short, long, max_ahead_ms=max_ahead_ms, max_wait_ms=max_wait_ms)
        self._partitions: Partitions | None = None
        self._placer = Placer()
        self._placed: tuple[int, Placement] | None = None
        self._changes = 0  # of the metadata
        self._lock, self._turn = Lock(), Lock()

    # -- what writers bring ----------------------------------------------------------------------------------

    def apply(self, event: Event, now_ms: int) -> None:
        """Fold a metadata event; `MetadataImage.apply` says what is refused. A moved partition keeps its history."""
        with self._writing():
            self._samples.expect(event, now_ms)
            self._changes += 1
            self._samples.forget(self.image.apply(event, now_ms))

    def replace(self, image: MetadataImage, now_ms: int) -> None:
        """Become what `image` says, as after loading a checkpoint. What it does not have is gone; partitions of the same
        topic id keep their history. `image` is read, not kept."""
        with self._writing():
            self._samples.expect_all(image, now_ms)
            self._changes += 1
            self._samples.forget(self.image.replace(image, now_ms))

    def set_capacity(self, broker: int, resource: str, value: float) -> None:
        """State a broker's capacity, in the resource's unit, for as long as its reporter says nothing else."""
        with self._writing():
            self._samples.brokers.set_capacity(broker, resource, value)

    def ingest(self, batch: ObservedBatch, now_ms: int, *, stands_in: bool = False) -> bool:
        """Count one batch, once; False where it was refused as a whole (`counts` says why). One that `stands_in` was measured in the
        place of a broker's reporter: it has no number, and the reporter is not heard by it.

        Late batches count into the windows that they are of. What the metadata does not place yet waits for it. O(values),
        vectorized over rows; once a window, O(partitions x windows) for each metric.
        """
        store = self._samples
        with self._writing():
            pieces = store.accept(batch, now_ms, stands_in)
            if pieces is None:
                return False
            columns = [column for piece in pieces for column in store.columns_of(piece)]
        for column in columns:
            with self._writing():  # each for itself: a reader need not wait for all windows to be rolled
                column.advance(batch.time_ms)
        with self._writing():
            for piece in pieces:
                store.take(piece)
        return True

    # -- what readers get ----------------------------------------------------------------------------------

    def broker_use(self, broker: int, horizon: HorizonName = "long") -> dict[str, float]:
        """Measured use of a whole broker, resource -> value; what its replicas' loads should add up to."""
        with self._reading():
            return self._samples.brokers.use(broker, horizon)

    def leads(self, broker: int, topic: str, partition: int) -> bool | None:
        """Whether a broker leads a partition now; None where the metadata does not know the partition."""
        with self._reading():
            row = self.image.topic_rows((topic,))
            slot = int(self.image.slots(row, np.array([partition], dtype=np.int32))[0])
            return None if slot < 0 else int(self.image.leader[slot]) == broker

    def led_by(self, brokers: Collection[int]) -> list[tuple[str, int, int]]:
        """Topic, partition and leader of what these brokers lead. O(partitions)."""
        with self._reading():
            image = self.image
            slots = image.live_slots()
            slots = slots[np.isin(image.leader[slots], list(brokers))]
            names = image.topic_names()
            columns = (image.topic_row[slots].tolist(), image.number[slots].tolist(), image.leader[slots].tolist())
            return [(names[row], number, leader) for row, number, leader in zip(*columns, strict=True)]

    def capacity(self, broker: int, resource: str) -> float | None:
        """What a broker can carry, in the resource's unit; None where it was not given."""
        with self._reading():
            values = self._samples.brokers.capacities([broker]).get(resource)
        return None if values is None or np.isnan(values[0]) else float(values[0])

    @property
    def counts(self) -> IngestCounts:
        """What became of batches and values so far; goes on counting."""
        return self._samples.counts

    def state(self) -> ModelState:
        """Sizes and counts, for metrics."""
        with self._reading():
            image, store = self.image, self._samples
            metadata = sum(array.nbytes for array in vars(image).values() if isinstance(array, np.ndarray))
            return ModelState(
                len(image.brokers), len(image.topic_ids), image.partition_count, store.newest_ms,
                store.waiting.cells, store.nbytes + metadata, replace(store.counts),
            )  # fmt: skip

    def voices(self, now_ms: int) -> tuple[BrokerVoice, ...]:
        """How every registered broker's reporter is heard, by id. O(brokers)."""
        with self._reading():
            return self._voices(now_ms)

    def staleness(self, now_ms: int) -> Staleness:
        """Partitions whose leaders, and brokers that, sent nothing for longer than `stale_after_ms`. O(partitions)."""
        self._prepare()
        with self._reading():
            self._samples.settle(now_ms)
            partitions = self._ordered()
            newest = np.full(len(partitions.slots), NEVER, dtype=np.int64)
            for (role, _), column in self._samples.columns.items():
                if role == LEADER:
                    inside = partitions.slots < len(column.times)
                    np.maximum.at(newest, np.flatnonzero(inside), column.times[partitions.slots[inside]])
            voices = self._voices(now_ms)
        old = np.flatnonzero(newest < max(now_ms - self._stale_after_ms, 0))
        first = tuple((partitions.topics[partitions.topic[i]], int(partitions.number[i])) for i in old[:NAMED].tolist())
        return Staleness(len(old), first, tuple(v for v in voices if v.voice != "fresh"))

    def snapshot(self, taken_at_ms: int, *, horizon: HorizonName = "long") -> LiveSnapshot:
        """The cluster as of now, frozen: later events and batches do not reach it.

        Loads are means over the horizon, or the last known value where that has no sample. A partition with a
        reassignment in progress stands where it is going. What is stale, estimated, in progress or unknown is in `notes`
        and, as data, in `trust`.

        Notes
        -----
        O(replicas). The writer waits only while columns are copied out; what is derived from them is private already.
        """
        count, keys, is_placed = self._prepare()
        raw, room = RawLoads(count, keys), None if is_placed else self._placer.room(count)
        with self._reading():
            self._samples.settle(taken_at_ms)
            partitions, placed = self._ordered(), self._place(room)
            if raw.count != len(partitions.slots):
                raw = RawLoads(len(partitions.slots), [])
            raw.read(self._samples.columns, partitions.slots, horizon, taken_at_ms - self._stale_after_ms)
            ids = placed.broker_ids.tolist()
            states = np.array([self._state(b, taken_at_ms) for b in ids], dtype=np.int8)
            racks = tuple(self.image.brokers[b].rack if b in self.image.brokers else None for b in ids)
            capacity = self._samples.brokers.capacities(ids)
            cpu = self._samples.brokers.measured("cpu", ids, horizon, taken_at_ms - self._stale_after_ms)
            voices = self._voices(taken_at_ms)
            latencies = self._samples.brokers.latencies.of(ids, taken_at_ms)
            moving = len(self.image.reassigning)
        leading, following = derive(raw, placed, cpu, partitions.topic)
        trust = LoadTrust(
            horizon, self._horizons[horizon].span_ms, self._stale_after_ms,
            {r: flags for r, (_, flags) in leading.items()}, {r: flags for r, (_, flags) in following.items()}, voices, latencies,
        )  # fmt: skip
        snapshot = LiveSnapshot(
            cluster_id=self.cluster_id,
            taken_at=_timestamp(taken_at_ms),
            storage=self.storage,
            broker_ids=placed.broker_ids,
            broker_states=states,
            racks=racks,
            capacity=capacity,
            topics=partitions.topics,
            partition_topic=partitions.topic,
            partition_number=partitions.number,
            replicas=placed.replicas,
            leader=placed.leader,
            leader_load={r: values for r, (values, _) in leading.items()},
            follower_load={r: values for r, (values, _) in following.items()},
            has_follower_load=np.full(len(partitions.slots), bool(following)),
            trust=trust,
        )
        return replace(snapshot, notes=notes_of(snapshot, moving, self._dead_after_ms))

    def _prepare(self) -> tuple[int, list[Key], bool]:
        """Work out the order of partitions beside the writer; how many there are, which columns, and whether their
        placement is known."""
        with self._reading():
            keys, known = list(self._samples.columns), self._partitions
            if known is not None and known.structure == self.image.structure:
                return len(known.slots), keys, self._placed is not None and self._placed[0] == self._changes
            given = structure_of(self.image)
        self._partitions = canonical(given)
        return len(given.slots), keys, False

    def _ordered(self) -> Partitions:
        if self._partitions is None or self._partitions.structure != self.image.structure:
            self._partitions = canonical(structure_of(self.image))
        return self._partitions

    def _place(self, room: Room | None) -> Placement:
        if self._placed is None or self._placed[0] != self._changes:
            self._placed = (self._changes, self._placer.place(self.image, self._ordered(), room))
        return self._placed[1]

    def _voices(self, now_ms: int) -> tuple[BrokerVoice, ...]:
        return tuple(self._voice(broker, now_ms) for broker in sorted(self.image.brokers))

    def _voice(self, broker: int, now_ms: int) -> BrokerVoice:
        heard = self._samples.deliveries.of.get(broker)
        if heard is None:
            return BrokerVoice(broker, "never", None)
        age = max(now_ms - heard.newest_ms, 0)
        voice: Voice = "fresh"
        if age > self._stale_after_ms:
            voice = "late" if now_ms - heard.arrived_ms <= self._stale_after_ms else "silent"
        return BrokerVoice(broker, voice, age)

    def _state(self, broker: int, now_ms: int) -> BrokerState:
        entry = self.image.brokers.get(broker)
        if entry is None:
            return BrokerState.DEAD
        if entry.fenced_since_ms is not None:
            return BrokerState.DEAD if now_ms - entry.fenced_since_ms > self._dead_after_ms else BrokerState.EXCLUDED
        return BrokerState.EXCLUDED if entry.stopping else BrokerState.ACTIVE

    # -- threads -------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._turn:  # a reader that waits is let in before the writer goes on
            pass
        with self._lock:
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._turn, self._lock:
            yield


def _timestamp(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds").replace("+00:00", "Z")
