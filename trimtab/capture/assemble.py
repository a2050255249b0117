"""A snapshot document out of what was read; pure.

Used by `trimtab.capture`. Nothing is dropped in silence: what could not be read is in the document with the
state that is known of it, and in a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from trimtab.capture.capacity import Capacities
from trimtab.capture.directories import held_of
from trimtab.capture.rates import Rates
from trimtab.capture.reading import BrokerReading, LogDir, PartitionEntry, Reading, TopicPartition, Topology

LISTED = 8
FULL, UNEVEN = 0.85, 0.2  # share of a volume that is used, and beyond all of the broker's together: from there it is told
OTHERS = 0.05  # share of a disk that something else may hold before it is worth a note


@dataclass
class Notes:
    """Remarks in the order they are found; `warnings` are those an operator must not miss."""

    texts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.texts.append(text)

    def warn(self, text: str) -> None:
        self.texts.append(text)
        self.warnings.append(text)


def assemble(
    topology: Topology,
    before: Reading,
    after: Reading,
    rates: Rates | None,
    capacities: Capacities,
    taken_at: str,
    notes: Notes,
) -> dict[str, object]:
    """The document (docs/contract.md, section 2) of a cluster that was described and read; remarks go to `notes`,
    and into it.

    `rates` None means that none were measured; `before` and `after` may then be the same reading.
    """
    for note in topology.notes:
        notes.say(note)
    brokers = _brokers(topology, before, after, capacities, notes)
    _tell_topics(topology, after, notes)
    partitions = _partitions(topology, before, after, rates, notes)
    _add_directories(brokers, partitions, after)
    _tell_rates(rates, notes)
    return {
        "version": 1,
        "cluster_id": topology.cluster_id,
        "taken_at": taken_at,
        "storage": "local",
        "notes": notes.texts,
        "brokers": brokers,
        "partitions": partitions,
    }


def _add_directories(brokers: list[dict[str, object]], partitions: list[dict[str, object]], after: Reading) -> None:
    """Log directories of the brokers that have several volumes, and which one holds each replica."""
    active = {cast(int, broker["id"]): broker for broker in brokers if broker["state"] == "active"}
    held = {broker: of for broker, of in held_of(after).items() if broker in active}
    for broker, of in held.items():
        active[broker]["directories"] = of.documents
    for document in partitions if held else ():
        key = cast(str, document["topic"]), cast(int, document["partition"])
        places = [held[b].place_of(key) if b in held else None for b in cast(list[int], document["replicas"])]
        if any(place is not None for place in places):
            document["directories"] = places


def _brokers(
    topology: Topology, before: Reading, after: Reading, capacities: Capacities, notes: Notes
) -> list[dict[str, object]]:
    hosting = {b for p in topology.partitions.values() for b in (*p.replicas, *p.target)}
    brokers: list[dict[str, object]] = []
    told: list[int] = []
    for broker in sorted(hosting | topology.brokers.keys()):
        entry = topology.brokers.get(broker)
        reading = after.get(broker, BrokerReading(answered=False))
        earlier = before.get(broker, BrokerReading(answered=False))
        dead = None
        if entry is None:
            dead = "hosts replicas but is not registered"
        elif entry.fenced:
            dead = "is fenced (registered, but not serving)"
        elif not (reading.answered or earlier.answered):
            why = "; ".join(reading.errors) or "no answer"
            dead = f"is registered but could not be reached ({why}); if it is up, check its advertised.listeners from here"
        if dead is not None:
            notes.warn(f"broker {broker} {dead}: its state is dead, so a plan would empty it")
        else:
            _tell_broker(broker, reading, notes)
        document: dict[str, object] = {"id": broker, "state": "active" if dead is None else "dead"}
        if entry is not None and entry.rack:
            document["rack"] = entry.rack
        capacity = capacities.of(broker)
        volumes = reading.sizes.volumes if reading.sizes is not None and dead is None else ()
        if "disk" not in capacity and volumes:
            capacity["disk"] = float(sum(volume.total for volume in volumes))
            told.append(broker)
            _tell_others(broker, reading, notes)
        if capacity:
            document["capacity"] = capacity
        brokers.append(document)
    if told:
        notes.say(f"disk capacity of {_count(len(told), 'broker is', 'brokers are')} the size of the file systems of their log directories")
    for broker in sorted(set(capacities.brokers) - hosting - topology.brokers.keys()):
        notes.warn(f"the capacity file lists broker {broker}, which the cluster does not have")
    return brokers


def _tell_broker(broker: int, reading: BrokerReading, notes: Notes) -> None:
    for error in reading.errors:
        notes.warn(f"broker {broker} did not answer completely: {error}")
    if reading.sizes is not None and reading.sizes.offline_dirs:
        notes.warn(f"broker {broker} has offline log directories: {_few(reading.sizes.offline_dirs)}")
    if reading.sizes is not None:
        _tell_directories(broker, reading.sizes.volumes, notes)
    if reading.sizes is not None and reading.sizes.moving:
        notes.say(f"broker {broker} is moving {reading.sizes.moving} replicas between its log directories")


def _tell_directories(broker: int, volumes: tuple[LogDir, ...], notes: Notes) -> None:
    """Warn of the fullest of several volumes: a replica is in one directory, so there may be no room though the broker has some."""
    if not volumes:
        return
    fullest = max(volumes, key=lambda v: v.used)
    together = 1.0 - sum(v.usable for v in volumes) / sum(v.total for v in volumes)
    if uneven(fullest.used, together, len(volumes)):
        notes.warn(
            f"broker {broker}: log directory {fullest.path} is {fullest.used:.0%} full, its {len(volumes)} log directories together "
            f"{together:.0%}; a replica fits into one of them, and plans know their sum only. `trimtab directories` moves replicas "
            "between them"
        )


def uneven(fullest: float, together: float, volumes: int) -> bool:
    """Whether the fullest of several volumes is worth a word: shares in use, of it and of all."""
    return volumes > 1 and (fullest >= FULL or fullest - together >= UNEVEN)


def _tell_others(broker: int, reading: BrokerReading, notes: Notes) -> None:
    """Bytes on the disks of a broker that are no log of its own: its limit is reached sooner than its logs say."""
    assert reading.sizes is not None
    volumes = reading.sizes.volumes
    total = sum(volume.total for volume in volumes)
    others = total - sum(volume.usable for volume in volumes) - sum(reading.sizes.sizes.values())
    if others > OTHERS * total:
        notes.say(
            f"{others / total:.0%} of the disks of broker {broker} holds other files than logs; "
            "give the space for logs with --capacity"
        )


def _tell_topics(topology: Topology, after: Reading, notes: Notes) -> None:
    """What the cluster has and does not describe to us."""
    for topic, why in sorted(topology.unreadable.items()):
        notes.warn(f"topic {topic} is not described completely ({why}); its missing parts are not in the snapshot")
    hidden = {
        key
        for reading in after.values()
        if reading.sizes is not None
        for key in reading.sizes.sizes
        if key not in topology.partitions
    }
    if hidden:
        notes.warn(
            f"{_count(len(hidden), 'partition has', 'partitions have')} logs on brokers but no metadata "
            f"({_names(hidden)}), so they are not in the snapshot: the principal needs Describe on all topics, or they are being "
            "created, deleted or left over"
        )


def _partitions(
    topology: Topology, before: Reading, after: Reading, rates: Rates | None, notes: Notes
) -> list[dict[str, object]]:
    documents: list[dict[str, object]] = []
    leaderless, offline, unsized, borrowed, ending = [], [], [], [], []
    reassigned = 0
    for key, entry in topology.partitions.items():
        leader = entry.leader
        if entry.target != entry.replicas:
            reassigned += 1
        if leader is not None and leader not in entry.target:
            ending.append(key)
            leader = entry.target[0]
        if leader is None:
            leaderless.append(key)
        if entry.offline:
            offline.append(key)
        load = _rates_of(key, entry, rates)
        size, own = _size(key, entry, before, after)
        if size is None:
            unsized.append(key)
        else:
            load["disk"] = float(size)
            if not own and entry.leader is not None:
                borrowed.append(key)
        document: dict[str, object] = {
            "topic": key[0], "partition": key[1], "replicas": list(entry.target), "leader": leader,
        }  # fmt: skip
        if load:
            document["leader_load"] = load
        documents.append(document)
    if leaderless:
        notes.warn(f"{_count(len(leaderless), 'partition has', 'partitions have')} no leader: {_names(leaderless)}")
    if offline:
        replicas = sum(len(topology.partitions[key].offline) for key in offline)
        notes.warn(f"{_count(replicas, 'replica is', 'replicas are')} offline, of {_names(offline)}")
    if reassigned:
        notes.warn(
            f"{_count(reassigned, 'partition is', 'partitions are')} being reassigned: the snapshot has "
            "the replica lists "
            "as they will be afterwards; rates and sizes are of now"
        )
    if ending:
        notes.say(
            f"the leader of {_names(ending)} is a replica that is being removed: the snapshot has the "
            "preferred leader of "
            "the new list instead"
        )
    if borrowed:
        notes.warn(f"the leader's log size is not known of {_names(borrowed)}: that of the largest other replica is taken")
    if unsized:
        notes.warn(f"no log size is known of {_names(unsized)}: they carry no disk load")
    return documents


def _rates_of(key: TopicPartition, entry: PartitionEntry, rates: Rates | None) -> dict[str, float]:
    rate = rates.of.get(key) if rates is not None else None
    if rate is None:
        return {}
    followers = len(entry.target) - 1
    return {"network_in": rate.appended, "network_out": rate.fetched + followers * rate.appended}


def _size(key: TopicPartition, entry: PartitionEntry, before: Reading, after: Reading) -> tuple[int | None, bool]:
    """Bytes of the leader's log, and whether they are its own; else the largest of the others, else None."""
    for reading in (after, before):
        sizes = _log_sizes(reading, entry.leader)
        if key in sizes:
            return sizes[key], True
    others = [
        sizes[key]
        for reading in (after, before)
        for broker in entry.replicas
        if key in (sizes := _log_sizes(reading, broker))
    ]
    return (max(others), False) if others else (None, False)


def _log_sizes(reading: Reading, broker: int | None) -> Mapping[TopicPartition, int]:
    part = reading[broker].sizes if broker is not None and broker in reading else None
    return {} if part is None else part.sizes


def _tell_rates(rates: Rates | None, notes: Notes) -> None:
    if rates is None:
        notes.say("no rates were measured: network_in and network_out are absent")
        return
    notes.say(f"rates were measured over {rates.seconds:.2f} s from log sizes and offsets")
    notes.say(
        "network_out is a lower bound: followers' fetches, plus what "
        f"{_count(rates.groups, 'consumer group', 'consumer groups')} committed; consumers that commit "
        "no offsets are not seen, "
        "and commits lag behind fetches"
    )
    notes.say("cpu, produce_rate and fetch_rate are absent: they need metrics of the brokers")
    _tell_cut(rates, notes)
    _tell_unseen(rates, notes)
    if rates.moved_leader:
        notes.say(f"{_count(rates.moved_leader, 'partition', 'partitions')} changed leader meanwhile")
    if rates.unmeasured:
        notes.warn(
            f"no rate could be measured of {_names(rates.unmeasured)}: new, or its leader did not "
            "answer at both ends; they "
            "carry no network load"
        )
    if rates.unknown_groups:
        why = "; ".join(sorted(set(rates.unknown_groups.values())))
        notes.warn(f"consumer groups whose commits are not known: {_few(sorted(rates.unknown_groups))} ({why})")


def _tell_cut(rates: Rates, notes: Notes) -> None:
    """Of which topics the rate is an estimate, and how good."""
    cut = [key for key, rate in rates.of.items() if rate.estimated]
    kept = [key for key in cut if key[0] not in rates.compacted]
    cleaned = [key for key in cut if key[0] in rates.compacted and not rates.of[key].guessed]
    guessed = [key for key in cut if key[0] in rates.compacted and rates.of[key].guessed]
    if kept:
        notes.say(
            f"{_count(len(kept), 'log was', 'logs were')} cut by retention or compaction meanwhile ({_names(kept)}): "
            "network_in is records appended times their average size"
        )
    if cleaned:
        notes.warn(
            f"network_in of {_topics(cleaned)} is records appended times what a record took when the log grew: compacted topics, "
            "cleaned meanwhile"
        )
    if guessed:
        notes.warn(
            f"network_in of {_topics(guessed)} may be far too low: these topics are compacted all the time, so the size of a log "
            "says little about the bytes produced; a longer --interval may help, and reporters measure it"
        )
    if rates.unread:
        notes.warn(
            f"it is not known whether {_few(rates.unread)} are compacted, and network_in is far too low of topics that are: the principal "
            "needs DescribeConfigs on all topics"
        )


def _tell_unseen(rates: Rates, notes: Notes) -> None:
    """Topics that are produced to, and of which no group committed anything."""
    fetched = {key[0] for key, rate in rates.of.items() if rate.fetched > 0.0}
    alone = [key for key, rate in rates.of.items() if rate.appended > 0.0 and key[0] not in fetched and not key[0].startswith("__")]
    if alone:
        notes.warn(
            f"no consumer group committed offsets of {_topics(alone)} meanwhile: consumers without a group, if there are any, are not in "
            "network_out"
        )


def _topics(keys: Iterable[TopicPartition]) -> str:
    """Topics with how many of their partitions."""
    counts = Counter(topic for topic, _ in keys)
    return _few(f"{topic} ({_count(counts[topic], 'partition', 'partitions')})" for topic in sorted(counts))


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _names(keys: Iterable[TopicPartition]) -> str:
    return _few([f"{topic}-{number}" for topic, number in sorted(keys)])


def _few(texts: Iterable[str]) -> str:
    listed = list(texts)
    more = len(listed) - LISTED
    return ", ".join(listed[:LISTED]) + (f" and {more} more" if more > 0 else "")
