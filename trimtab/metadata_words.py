"""A metadata image and its events, in words for people and in JSON for programs.

Used by `trimtab metadata`. Pure.
"""

from __future__ import annotations

import io
import re
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cluster_model.metadata.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerStopping,
    BrokerUnfenced,
    ControllerChanged,
    Event,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.plain_text import printable

if TYPE_CHECKING:
    from cluster_model.metadata.follower import Update
    from cluster_model.metadata.image import BrokerEntry, MetadataImage

WIDTH = 110


def event_words(event: Event) -> str:
    """What happened, as one line."""
    return printable(_words(event))


def _words(event: Event) -> str:
    match event:
        case BrokerRegistered(id, rack, fenced, stopping):
            words = [f"broker {id} registered", f"rack {rack}" if rack is not None else "no rack"]
            return ", ".join([*words, *(["fenced"] if fenced else []), *(["stopping"] if stopping else [])])
        case BrokerFenced(id):
            return f"broker {id} fenced"
        case BrokerUnfenced(id):
            return f"broker {id} unfenced"
        case BrokerStopping(id):
            return f"broker {id} in controlled shutdown"
        case BrokerRemoved(id):
            return f"broker {id} unregistered"
        case TopicCreated(name, topic_id):
            return f"topic {name} created, id {topic_id}"
        case TopicDeleted(name):
            return f"topic {name} deleted"
        case ControllerChanged(id, epoch):
            return f"controller {id} active in epoch {epoch}"
        case PartitionChanged():
            words = [
                f"partition {event.topic}-{event.partition}: " + ("no leader" if event.leader is None else f"leader {event.leader}"),
                f"replicas {_listed(event.replicas)}",
                f"in sync {_listed(event.isr)}",
                *([f"adding {_listed(event.adding)}"] if event.adding else []),
                *([f"removing {_listed(event.removing)}"] if event.removing else []),
            ]
            return ", ".join(words)


def event_document(event: Event, offset: int, at: datetime) -> dict[str, object]:
    """What happened, as a JSON object; `offset` is None where the source has no offsets."""
    kind = re.sub(r"(?<!^)([A-Z])", r"_\1", type(event).__name__).lower()
    return {"event": kind, "time": _time(at), "offset": offset if offset >= 0 else None, **asdict(event)}


def image_document(image: MetadataImage, update: Update, cluster_id: str | None) -> dict[str, object]:
    """The whole image as a JSON object."""
    controller = image.controller
    return {
        "version": 1,
        "cluster_id": cluster_id,
        "offset": update.offset if update.offset >= 0 else None,
        "epoch": update.epoch if update.epoch >= 0 else None,
        "high_watermark": update.high_watermark,
        "held": update.held,
        "controller": None if controller is None else {"id": controller.id, "epoch": controller.epoch},
        "brokers": [
            {"id": id, "rack": entry.rack, "state": _state(entry)} for id, entry in sorted(image.brokers.items())
        ],
        "topics": [
            {"name": name, "id": topic_id, "partitions": [_partition(p) for p in image.partitions(image.slots_of_topic(name))]}
            for name, topic_id in sorted(image.topic_ids.items())
        ],
    }  # fmt: skip


def image_words(image: MetadataImage, update: Update, cluster_id: str | None) -> str:
    """The image as a person reads it: brokers and topics, with what is wrong with them."""
    from rich.console import Console
    from rich.table import Table

    text = io.StringIO()
    console = Console(file=text, width=WIDTH, markup=False, highlight=False, emoji=False)
    console.print(printable(_head(image, update, cluster_id)), soft_wrap=True)
    brokers = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("broker", "rack", "state", "replicas", "leaders"):
        brokers.add_column(title, justify="left" if title in ("rack", "state") else "right")
    slots = image.live_slots()
    hosts = image.replicas[slots]
    hosting = sorted({int(b) for b in set(hosts[hosts >= 0].tolist())} | image.brokers.keys())
    for id in hosting:
        entry = image.brokers.get(id)
        state = "unregistered" if entry is None else _state(entry)
        rack = printable(entry.rack) if entry is not None and entry.rack is not None else "-"
        counts = (int((hosts == id).sum()), int((image.leader[slots] == id).sum()))
        brokers.add_row(str(id), rack, state, *(f"{n:,}" for n in counts))
    console.print("", brokers, "")
    topics = Table(box=None, padding=(0, 2, 0, 0))
    topics.add_column("topic", overflow="fold")
    for title in ("partitions", "replicas", "without leader", "under-replicated", "being reassigned"):
        topics.add_column(title, justify="right")
    for name in sorted(image.topic_ids):
        of = image.slots_of_topic(name)
        replicas = image.replicas[of] >= 0
        short = int((image.in_sync_places[of].sum(axis=1) < replicas.sum(axis=1)).sum())
        moving = sum(slot in image.reassigning for slot in of.tolist()) if image.reassigning else 0
        counts5 = (len(of), int(replicas.sum()), int((image.leader[of] < 0).sum()), short, moving)
        topics.add_row(printable(name), *(f"{n:,}" for n in counts5))
    console.print(topics)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _head(image: MetadataImage, update: Update, cluster_id: str | None) -> str:
    parts = [f"cluster {cluster_id}" if cluster_id else "a cluster of unknown id"]
    if update.offset >= 0:
        parts.append(f"metadata log to offset {update.offset:,} in epoch {update.epoch}")
    if update.time_ms:
        parts.append(f"written {_time(datetime.fromtimestamp(update.time_ms / 1000, UTC))}")
    parts.append("controller " + (str(image.controller.id) if image.controller is not None else "not known"))
    parts.append(f"{len(image.brokers):,} brokers, {len(image.topic_ids):,} topics, {image.partition_count:,} partitions")
    return "; ".join(parts)


def _partition(partition: PartitionChanged) -> dict[str, object]:
    document = asdict(partition)
    return {key: value for key, value in document.items() if key not in ("topic", "epoch")}


def _state(entry: BrokerEntry) -> str:
    if entry.fenced_since_ms is not None:
        return "fenced"
    return "stopping" if entry.stopping else "active"


def _listed(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers)) if brokers else "none"


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
