"""The seam between an execution and a cluster: look, ask for a step, read and write throttles. Two adapters stand behind it.

`trimtab.execution.kafka_port` is a real cluster's, `trimtab.simulator.port` the simulated one's; the same tests hold for both. No call
here decides anything, and each step may be asked for again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from trimtab.execution.state import Observed, Partition


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one part of a request was not done, by Kafka's name of the error; `retriable` where the same may go through later."""

    code: str
    message: str = ""
    retriable: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class Resource(NamedTuple):
    """What has a configuration."""

    kind: Literal["broker", "topic"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


Configs = Mapping[Resource, Mapping[str, str]]
Answers = dict[Partition, Refusal | None]
"""By partition; None is accepted, which does not mean that it is complete."""


class ClusterPort(Protocol):
    """A cluster; used by one thread. Every call raises `ExternalError` where the cluster does not answer at all."""

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        """The cluster now: partitions of `topics`, of all topics where that is None, and in any case what is being reassigned.

        How much is copied is told of `names` only, and free room of `brokers` only.
        """
        ...

    def sizes(self, names: Collection[Partition]) -> dict[Partition, float]:
        """Bytes of the largest replica of each partition; one that is not known is left out."""
        ...

    def reassign(self, targets: Mapping[Partition, tuple[int, ...] | None]) -> Answers:
        """Start reassignments to whole replica lists, or cancel those in progress where the list is None (KIP-455)."""
        ...

    def elect(self, names: Sequence[Partition]) -> Answers:
        """Elect the preferred leader of exactly these partitions; one that leads already is no refusal."""
        ...

    def configs(self, resources: Collection[Resource], keys: Collection[str]) -> dict[Resource, dict[str, str]]:
        """Values of `keys` set on each resource itself. A resource that does not answer or is gone is left out."""
        ...

    def setting(self, broker: int, key: str) -> str | None:
        """The value of a broker's key that holds, wherever it comes from; None where the broker does not tell."""
        ...

    def set_configs(self, changes: Mapping[Resource, Mapping[str, str | None]]) -> dict[Resource, Refusal | None]:
        """Set keys on resources, or remove them where the value is None."""
        ...

    def close(self) -> None: ...
