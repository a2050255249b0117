"""Follows a cluster's metadata where no log can be read: an admin interface is asked again and again.

Takes the place of `follower.KRaftFollower`. What is asked is a seam, so nothing here knows a Kafka client.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster_model.errors import ExternalError
from cluster_model.metadata.description import AdminInterface, ClusterDescription
from cluster_model.metadata.difference import difference
from cluster_model.metadata.events import BrokerRegistered, ControllerChanged, Event, PartitionChanged, TopicCreated
from cluster_model.metadata.follower import Update
from cluster_model.metadata.image import MetadataImage


class AdminFollower:
    """Compares each description of the cluster with the one before.

    Notes
    -----
    What happened and was undone between two polls is not seen; nor are controlled shutdowns. O(partitions) for each
    poll, here and in the brokers: seconds between two polls are a good measure for a large cluster.
    """

    def __init__(self, admin: AdminInterface) -> None:
        self._admin = admin
        self._image = MetadataImage()
        self._begun = False

    @property
    def image(self) -> MetadataImage:
        """The image as of the last poll; the follower's own, to be read only."""
        return self._image

    def poll(self, now_ms: int) -> Update:
        """Ask, and say what happened since the last poll.

        Raises
        ------
        ExternalError
            The cluster refuses to be asked, for good.
        """
        try:
            description = self._admin.describe()
        except ExternalError as error:
            if not error.retriable:
                raise
            return Update((), held=str(error))
        new = MetadataImage()
        for event in self._described(description):
            new.apply(event, now_ms)
        held = None
        if description.unreadable:
            some = ", ".join(f"{name} ({why})" for name, why in sorted(description.unreadable.items())[:5])
            held = f"{len(description.unreadable)} topics are not described and are taken as they were: {some}"
        if not self._begun:
            self._begun = True
            self._image = new
            return Update(new.events(), replaced=True, held=held)
        events = tuple(difference(self._image, new))
        self._image.replace(new, now_ms)
        return Update(events, held=held)

    def _described(self, description: ClusterDescription) -> Iterator[Event]:
        """The description as events; topics that are not described are as they were."""
        report = description.quorum
        known = self._image.controller
        if report is not None and report.leader is not None and (known is None or report.epoch >= known.epoch):
            yield ControllerChanged(report.leader, report.epoch)
        elif known is not None:
            yield ControllerChanged(known.id, known.epoch)
        for broker in description.brokers:
            yield BrokerRegistered(broker.id, broker.rack, broker.fenced)
        for topic in description.topics:
            if topic.name in description.unreadable:
                continue
            yield TopicCreated(topic.name, topic.topic_id)
            for p in topic.partitions:
                adding, removing = description.reassigning.get((topic.name, p.number), ((), ()))
                yield PartitionChanged(
                    topic.name,
                    p.number,
                    p.replicas,
                    p.isr,
                    p.leader,
                    tuple(b for b in adding if b in p.replicas),  # two answers, perhaps of two moments
                    tuple(b for b in removing if b in p.replicas),
                )
        for name in description.unreadable:
            if name in self._image.topic_ids:
                yield TopicCreated(name, self._image.topic_ids[name])
                yield from self._image.partitions(self._image.slots_of_topic(name))
