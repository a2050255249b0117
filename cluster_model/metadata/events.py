"""What can happen to a cluster, as its metadata tells it.

Followers of the metadata and the simulator produce events; `MetadataImage` folds them, and code that keeps more
than the image (`cluster_model.model`) listens to them. Broker ids are the ones on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass

NO_BROKER = -1


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker came, or came again with another rack. `fenced` and `stopping` as the registration says."""

    id: int
    rack: str | None
    fenced: bool = False
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class BrokerFenced:
    id: int


@dataclass(frozen=True, slots=True)
class BrokerUnfenced:
    id: int


@dataclass(frozen=True, slots=True)
class BrokerStopping:
    """A broker shuts down in order: its leaderships are being moved away. Only the log tells of it."""

    id: int


@dataclass(frozen=True, slots=True)
class BrokerRemoved:
    id: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """`topic_id` differs between incarnations of one name."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    name: str


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """A partition as it is from now on (also when it is new).

    `replicas` has the adding and the removing ones too. `epoch` rises with every change, and an older one is
    ignored; 0 is of unknown age and always taken.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Another controller is the active one, or the same one again in a later `epoch`."""

    id: int
    epoch: int


Event = (
    BrokerRegistered
    | BrokerFenced
    | BrokerUnfenced
    | BrokerStopping
    | BrokerRemoved
    | TopicCreated
    | TopicDeleted
    | PartitionChanged
    | ControllerChanged
)
