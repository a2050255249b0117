"""A simulated cluster behind the port of executions: its admin calls, and configurations as brokers and topics have them.

Made by the demo, by the executor of simulated clusters, and by tests. Throttles work as in Kafka: rates are set on brokers, replicas
on topics; the simulated cluster knows one rate, so the lowest that any broker has holds for all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trimtab.execution.port import Answers, Refusal, Resource
from trimtab.execution.state import Observed, Partition, SeenBroker, SeenPartition
from trimtab.execution.throttle import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.spec import ErrorCode, TopicPartition
from trimtab.simulator.spec import Refusal as SimulatedRefusal

KEYS = {"broker": (LEADER_RATE, FOLLOWER_RATE), "topic": (LEADER_REPLICAS, FOLLOWER_REPLICAS)}


class SimulatedPort:
    """See `ClusterPort`; lets no time pass."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def close(self) -> None:
        """Nothing to let go of."""

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        cluster, controller = self._cluster, self._cluster.controller
        moving = cluster.list_partition_reassignments()
        partitions = {}
        wanted = None if topics is None else {*topics, *(name.topic for name in moving)}
        for name, entry in controller.partitions.items():
            if wanted is not None and name.topic not in wanted:
                continue
            r = moving.get(name)
            adding, removing = (r.adding, r.removing) if r is not None else ((), ())
            partitions[Partition(*name)] = SeenPartition(
                entry.replicas, controller.isr_of(entry), controller.leader_of(entry), adding, removing
            )
        used = cluster.logs.disk_used(len(cluster.brokers.ids))
        known = {}
        for row, id in enumerate(cluster.brokers.ids):
            if not cluster.brokers.gone[row]:
                spec = cluster.brokers.specs[row]
                alive = not cluster.brokers.fenced[row]
                room = max(float(cluster.brokers.disk[row] - used[row]), 0.0) if alive and id in brokers else None
                known[id] = SeenBroker(spec.rack, alive, room)
        copied = {n: moving[TopicPartition(*n)].copied for n in names if TopicPartition(*n) in moving}
        return Observed(cluster.cluster_id, cluster.now_ms, known, partitions, cluster.min_isr, copied)

    def sizes(self, names: Collection[Partition]) -> dict[Partition, float]:
        return {n: self._cluster.size(TopicPartition(*n)) for n in names if self._cluster.has(TopicPartition(*n))}

    def reassign(self, targets: Mapping[Partition, tuple[int, ...] | None]) -> Answers:
        answers = self._cluster.alter_partition_reassignments({TopicPartition(*n): t for n, t in targets.items()})
        return {Partition(*n): _refusal(r) for n, r in answers.items()}

    def elect(self, names: Sequence[Partition]) -> Answers:
        answers = self._cluster.elect_preferred_leaders([TopicPartition(*n) for n in names])
        return {Partition(*n): _refusal(r) for n, r in answers.items()}

    def configs(self, resources: Collection[Resource], keys: Collection[str]) -> dict[Resource, dict[str, str]]:
        return {
            r: {k: v for k, v in self._cluster.configs.get(r, {}).items() if k in keys} for r in resources if self._why_not(r) is None
        }

    def setting(self, broker: int, key: str) -> str | None:
        return None

    def set_configs(self, changes: Mapping[Resource, Mapping[str, str | None]]) -> dict[Resource, Refusal | None]:
        answers: dict[Resource, Refusal | None] = {}
        for resource, values in changes.items():
            why = answers[resource] = self._why_not(resource)
            if why is None:
                of = self._cluster.configs.setdefault(resource, {})
                of.update({k: v for k, v in values.items() if v is not None})
                for key in [k for k, v in values.items() if v is None]:
                    of.pop(key, None)
                if not of:
                    del self._cluster.configs[resource]
        rates = [float(of[k]) for r, of in self._cluster.configs.items() if r[0] == "broker" for k in KEYS["broker"] if k in of]
        self._cluster.throttle = min(rates, default=None)
        return answers

    def _why_not(self, resource: Resource) -> Refusal | None:
        if resource.kind == "topic":
            known = resource.name in self._cluster.controller.topics
            return None if known else Refusal("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {resource.name}")
        row = self._cluster.controller.row_of(int(resource.name))
        up = row is not None and bool(self._cluster.brokers.up[row])
        return None if up else Refusal("NO_ANSWER", f"broker {resource.name} does not answer", retriable=True)


def _refusal(refused: SimulatedRefusal | None) -> Refusal | None:
    if refused is None or refused.code is ErrorCode.ELECTION_NOT_NEEDED:
        return None
    again = refused.code.retriable or refused.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return Refusal(str(refused.code), refused.message, again)
