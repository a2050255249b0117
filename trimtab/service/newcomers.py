"""Partitions that were created while this service looked on, and when: too young to be moved for balance.

Told by `trimtab.service.metadata` of every image in which topics or partitions came or went, asked by the decider. What was there when the
service started is of unknown age, and taken for old.
"""

from __future__ import annotations

from threading import Lock

from cluster_model.metadata.image import MetadataImage

KEPT_MS = 7 * 86_400_000


class Newcomers:
    """See the module. One thread looks, another asks."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int]] | None = None  # of each topic, its id and how many partitions it has
        self._structure = -1
        self._since_ms: dict[tuple[str, int], int] = {}
        self._lock = Lock()

    def look(self, image: MetadataImage, now_ms: int) -> None:
        """Notice what is new since the look before. O(topics) where anything came or went."""
        if image.structure == self._structure:
            return
        self._structure = image.structure
        now = {name: (id, len(image.slots_of_topic(name))) for name, id in image.topic_ids.items()}
        before, self._known = self._known, now
        if before is None:
            return
        with self._lock:
            for name, (id, count) in now.items():
                was = before.get(name)
                first = was[1] if was is not None and was[0] == id else 0
                self._since_ms |= {(name, n): now_ms for n in range(first, count)}
            self._since_ms = {p: at for p, at in self._since_ms.items() if p[0] in now and now_ms - at < KEPT_MS}

    def younger_than(self, age_ms: int, now_ms: int) -> tuple[tuple[str, int], ...]:
        """Topics and numbers of partitions, ascending."""
        with self._lock:
            return tuple(sorted(p for p, at in self._since_ms.items() if now_ms - at < age_ms))
