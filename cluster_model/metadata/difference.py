"""What must happen to one image for it to become another.

Used by the followers: after a checkpoint was loaded, and after each poll of an admin interface. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cluster_model.metadata.events import (
    BrokerFenced,
    BrokerRemoved,
    BrokerStopping,
    BrokerUnfenced,
    ControllerChanged,
    Event,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.metadata.image import BrokerEntry, MetadataImage, registered
from cluster_model.snapshot import IntArray


def difference(old: MetadataImage, new: MetadataImage) -> Iterator[Event]:
    """Events that bring `old` to `new`, made one by one: change neither meanwhile.

    Epochs and times are no difference. O(partitions), vectorized over those that are equal.
    """
    if new.controller is not None and new.controller != old.controller:
        yield ControllerChanged(new.controller.id, new.controller.epoch)
    gone = old.absent_from(new)
    for name in gone:
        yield TopicDeleted(name)
    for id in sorted(old.brokers.keys() - new.brokers.keys()):
        yield BrokerRemoved(id)
    for id, entry in sorted(new.brokers.items()):
        yield from _of_broker(id, old.brokers.get(id), entry)
    for name in sorted((new.topic_ids.keys() - old.topic_ids.keys()) | set(gone) & new.topic_ids.keys()):
        yield TopicCreated(name, new.topic_ids[name])
        yield from new.partitions(new.slots_of_topic(name))
    yield from new.partitions(_changed(old, new, gone))


def _of_broker(id: int, old: BrokerEntry | None, new: BrokerEntry) -> Iterator[Event]:
    if old is None or old.rack != new.rack or (old.stopping and not new.stopping):
        yield registered(id, new)
        return
    if old.stopping != new.stopping:
        yield BrokerStopping(id)
    was, now = old.fenced_since_ms is not None, new.fenced_since_ms is not None
    if was != now:
        yield BrokerFenced(id) if now else BrokerUnfenced(id)


def _changed(old: MetadataImage, new: MetadataImage, gone: list[str]) -> IntArray:
    """int32 [N]: slots in `new` of the partitions of topics in both that are not as they were, by name."""
    names = new.topic_names()
    stays = np.array([name in old.topic_ids and name not in gone for name in names] or [False])
    slots = new.live_slots()
    slots = slots[stays[new.topic_row[slots]]]
    before = old.slots(old.topic_rows(tuple(names))[new.topic_row[slots]], new.number[slots])
    differs = before < 0
    width = max(old.replicas.shape[1], new.replicas.shape[1])
    differs |= (_wide(old.replicas[before], width) != _wide(new.replicas[slots], width)).any(axis=1)
    differs |= (_wide(old.in_sync_places[before], width) != _wide(new.in_sync_places[slots], width)).any(axis=1)
    differs |= old.leader[before] != new.leader[slots]
    moving = np.isin(before, list(old.reassigning)) | np.isin(slots, list(new.reassigning))
    for i in np.flatnonzero(moving).tolist():
        differs[i] |= old.reassigning.get(int(before[i])) != new.reassigning.get(int(slots[i]))
    slots = slots[differs]
    of = sorted(slots.tolist(), key=lambda slot: (names[new.topic_row[slot]], int(new.number[slot])))
    return np.array(of, dtype=np.int32)


def _wide(column: npt.NDArray[np.generic], width: int) -> npt.NDArray[np.generic]:
    """The same rows, `width` long; what is added is -1, or False."""
    fill = -1 if column.dtype == np.int32 else False
    return np.pad(column, ((0, 0), (0, width - column.shape[1])), constant_values=fill)
