"""The topology of a cluster from the metadata log on this machine, instead of from the admin interface.

Used by `trimtab.capture`. The brokers are still asked what is committed, so what is not is never in a capture.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from cluster_model.metadata.description import DescribedBroker, Quorum
from cluster_model.metadata.follower import KRaftFollower, Update
from cluster_model.metadata.image import MetadataImage
from cluster_model.properties import read_properties
from trimtab.capture.reading import Topology, partition_entry

CATCH_UP_SECONDS = 15.0
PAUSE_SECONDS = 0.1
OPTION = "--kraft-log"


class Clock(Protocol):
    """The part of `trimtab.capture.Clock` that is used here; they match."""

    @property
    def monotonic(self) -> Callable[[], float]: ...
    @property
    def sleep(self) -> Callable[[float], None]: ...


class LogPlacement:
    """A metadata log directory that is read up to what the quorum has committed.

    Parameters
    ----------
    directory
        ``…/__cluster_metadata-0`` on this machine.
    quorum
        Who knows the high watermark.
    cluster_id
        Of the cluster that is captured.

    Raises
    ------
    ConfigurationError
        The directory belongs to another cluster.
    """

    def __init__(self, directory: Path, quorum: Quorum, cluster_id: str, clock: Clock) -> None:
        require_cluster(directory, cluster_id)
        self._cluster_id, self._clock = cluster_id, clock
        self._follower = KRaftFollower(directory, quorum)

    def topology(self) -> Topology:
        """The cluster as of the high watermark now.

        Raises
        ------
        InputError
            The directory cannot be read, or what is in it.
        ExternalError
            This replica of the log does not come to the high watermark in time, or no answer says what that is.
        """
        update = caught_up(self._follower, self._clock)
        note = f"brokers, replica lists and leaders are from the metadata log at offset {update.offset}"
        return topology_of_image(self._follower.image, self._cluster_id, (note,))


def caught_up(follower: KRaftFollower, clock: Clock, seconds: float = CATCH_UP_SECONDS) -> Update:
    """Poll until everything is in the image that was committed when we were asked.

    Raises
    ------
    ExternalError
        That did not come about within `seconds`; the message says what holds it up.
    """
    deadline = clock.monotonic() + seconds
    while True:
        update = follower.poll(0)
        if update.caught_up:
            return update
        if clock.monotonic() >= deadline:
            raise ExternalError(
                f"the metadata log is not up to date after {seconds:g} s: "
                f"{update.held or f'read to offset {update.offset}, {update.high_watermark} is committed'}",
                retriable=True,
            )
        clock.sleep(PAUSE_SECONDS)


def cluster_of(directory: Path) -> str | None:
    """Id of the cluster that a metadata log directory belongs to; None where nothing beside it tells."""
    return _meta(directory).get("cluster.id")


def node_of(directory: Path) -> int | None:
    """Id of the node that a metadata log directory belongs to; None where nothing beside it tells.

    Raises
    ------
    ConfigurationError
        What is beside it cannot be read.
    """
    found = _meta(directory).get("node.id", "")
    return int(found) if found.isdecimal() else None


def _meta(directory: Path) -> dict[str, str]:
    properties = directory.parent / "meta.properties"
    return read_properties(properties) if properties.is_file() else {}


def require_cluster(directory: Path, cluster_id: str, document: str = "command line", place: str = OPTION) -> None:
    """Refuse a metadata log directory that belongs to another cluster.

    Raises
    ------
    ConfigurationError
        It does.
    """
    found = cluster_of(directory)
    if found is not None and found != cluster_id:
        message = f"{directory} belongs to cluster {found}, the brokers that were asked to {cluster_id}; name the same one twice"
        raise ConfigurationError(document, [Problem(place, message)])


def topology_of_image(image: MetadataImage, cluster_id: str, notes: tuple[str, ...] = ()) -> Topology:
    """What a capture needs to know of an image. Replicas on brokers that do not serve count as offline."""
    brokers = {
        id: DescribedBroker(id, entry.rack, entry.fenced_since_ms is not None) for id, entry in sorted(image.brokers.items())
    }
    serving = {id for id, broker in brokers.items() if not broker.fenced}
    partitions = {}
    for name in sorted(image.topic_ids):
        for p in image.partitions(image.slots_of_topic(name)):
            offline = tuple(b for b in p.replicas if b not in serving)
            partitions[name, p.partition] = partition_entry(p.replicas, p.removing, p.leader, offline)
    return Topology(cluster_id, brokers, partitions, notes=notes)
