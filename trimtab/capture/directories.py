"""Log directories of brokers with several volumes, and which one holds each replica; pure. Called by `trimtab.capture.assemble`.

Replicas that a broker is moving between its directories are where they will be: in the other one, with all of their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.capture.reading import LogSizes, Reading, TopicPartition


@dataclass(frozen=True, slots=True)
class Held:
    """What one broker tells of its log directories, as documents of a snapshot."""

    sizes: LogSizes
    documents: list[dict[str, object]]

    def place_of(self, key: TopicPartition) -> int | None:
        """The position of the directory that holds a replica, or will hold it; None where there is no such replica."""
        moving = self.sizes.future.get(key)
        return self.sizes.held.get(key) if moving is None else moving[0]


def held_of(reading: Reading) -> dict[int, Held]:
    """By broker, of those with several volumes: with one, there is nothing to move between."""
    found = {}
    for broker, told in reading.items():
        if told.sizes is not None and len(set(told.sizes.volume_of)) > 1:
            found[broker] = Held(told.sizes, _documents(told.sizes))
    return found


def _documents(sizes: LogSizes) -> list[dict[str, object]]:
    volumes = sizes.volume_of
    used = {at: sizes.dirs[at].total - sizes.dirs[at].usable for at in set(volumes)}
    for key, (to, copied) in sizes.future.items():
        if key in sizes.held and to < len(volumes):
            size = sizes.sizes[key]
            used[volumes[sizes.held[key]]] -= size
            used[volumes[to]] += max(size - copied, 0)
    shared = {at for at in volumes if volumes.count(at) > 1}
    return [
        {"path": d.path, "size": float(d.total), "used": float(min(max(used[at], 0), d.total))} | ({"volume": at} if at in shared else {})
        for d, at in zip(sizes.dirs, volumes, strict=True)
    ]
