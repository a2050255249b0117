"""Log directories of brokers that have several volumes, and which of them holds each replica.

Part of a `Snapshot`, where the source tells of them. Documents were found to be without problems by `cluster_model.refusals`; nothing here
reads files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

MOST = 127  # directories of a broker
DirectoryArray = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Directory:
    """One log directory: its path, bytes of its volume, bytes in use there by whatever it is, and a number that it shares with the other
    directories of that volume; None where it is the only one."""

    path: str
    size: float
    used: float
    volume: int | None = None


Directories = Mapping[int, tuple[Directory, ...]]
"""By wire id of the broker; brokers of which nothing is told are left out."""


def directories_in(brokers: Sequence[Mapping[str, object]]) -> Directories:
    """Of broker documents, by id."""
    given = {cast(int, b["id"]): cast(Sequence[Mapping[str, object]], b.get("directories") or ()) for b in brokers}
    return {broker: tuple(map(_directory, given[broker])) for broker in sorted(given) if given[broker]}


def _directory(document: Mapping[str, object]) -> Directory:
    size, used, volume = (cast(float | None, document.get(key)) for key in ("size", "used", "volume"))
    assert size is not None
    assert used is not None
    return Directory(str(document["path"]), float(size), float(used) + 0.0, None if volume is None else int(volume))


def directory_documents(directories: Sequence[Directory]) -> list[dict[str, object]]:
    """What `directories_in` reads, of one broker."""
    shared = [{} if d.volume is None else {"volume": d.volume} for d in directories]
    return [{"path": d.path, "size": d.size, "used": d.used, **more} for d, more in zip(directories, shared, strict=True)]


def followed(replicas: npt.NDArray[np.int32], held: DirectoryArray, after: npt.NDArray[np.int32]) -> DirectoryArray | None:
    """int8 [P, R]: directories of replica lists `after`, known of the replicas that were in `replicas` with `held`; None: of none."""
    found = np.full(after.shape, -1, np.int8)
    for slot in range(after.shape[1]):
        for before in range(replicas.shape[1]):
            same = (after[:, slot] == replicas[:, before]) & (after[:, slot] >= 0)
            found[same, slot] = held[same, before]
    return found if bool((found >= 0).any()) else None


def volumes_of(directories: Sequence[Directory]) -> list[int]:
    """Of each directory, the position of the first one on the same volume."""
    first: dict[int, int] = {}
    return [i if d.volume is None else first.setdefault(d.volume, i) for i, d in enumerate(directories)]
