"""Whatever operators and faults do to the simulated cluster, in any order: nothing committed is lost, nothing is invented.

Everything that later tests conclude from the simulator stands on these invariants.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cluster_model.metadata.image import MetadataImage
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.physics import CLOSE
from trimtab.simulator.spec import MB, BrokerSpec, ErrorCode, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

BROKERS = 5
brokers = st.integers(1, BROKERS)
replica_lists = st.permutations(range(1, BROKERS + 1)).flatmap(
    lambda order: st.integers(1, 3).map(lambda size: tuple(order[:size]))
)


class ClusterMachine(RuleBasedStateMachine):
    """Random operations; sizes are small so that moves finish and fail within the run."""

    @initialize(seed=st.integers(0, 1000), noise=st.sampled_from([0.0, 0.3]))
    def start(self, seed: int, noise: float) -> None:
        specs = [
            BrokerSpec(i, "abc"[i % 3], network_in=8 * MB, network_out=12 * MB, disk=400 * MB, disk_write=10 * MB)
            for i in range(1, BROKERS + 1)
        ]
        self.cluster = SimulatedCluster(specs, traffic=Traffic(seed, noise=noise), resolution_s=2.0)
        self.committed: dict[int, float] = {}
        self.wanted: dict[TopicPartition, tuple[int, ...]] = {}
        self.topics = 0
        self.create([(1, 2, 3), (2, 3, 1), (3, 4)], 0.5)

    def names(self) -> list[TopicPartition]:
        return sorted(self.cluster.controller.partitions)

    def pick(self, number: int) -> TopicPartition:
        names = self.names()
        return names[number % len(names)]

    @rule(assignment=st.lists(replica_lists, min_size=1, max_size=3), rate=st.sampled_from([0.0, 0.2, 3.0]))
    def create(self, assignment: list[tuple[int, ...]], rate: float) -> None:
        serving = {b for b, up in zip(self.cluster.brokers.ids, self.cluster.brokers.up, strict=True) if up}
        serving -= {b for b, f in zip(self.cluster.brokers.ids, self.cluster.brokers.fenced, strict=True) if f}
        assignment = [replicas for replicas in assignment if set(replicas) <= serving]
        if not assignment:
            return
        count = len(assignment)
        name = f"t{self.topics}"
        self.topics += 1
        self.cluster.create_topic(
            TopicSpec(name, tuple(assignment), np.full(count, rate * MB), 1.0, np.full(count, 30 * MB), filled=0.8)
        )
        self.wanted.update({TopicPartition(name, i): replicas for i, replicas in enumerate(assignment)})

    @precondition(lambda self: len(self.cluster.controller.topics) > 1)
    @rule(number=st.integers(0, 50))
    def delete(self, number: int) -> None:
        topic = self.pick(number).topic
        self.cluster.delete_topic(topic)
        self.wanted = {n: r for n, r in self.wanted.items() if n.topic != topic}

    @rule(number=st.integers(0, 50), goal=replica_lists)
    def reassign(self, number: int, goal: tuple[int, ...]) -> None:
        name = self.pick(number)
        before = self.cluster.replicas(name)
        refusal = self.cluster.alter_partition_reassignments({name: goal})[name]
        if refusal is None:
            self.wanted[name] = goal
        else:
            assert refusal.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
            assert self.cluster.replicas(name) == before

    @rule(number=st.integers(0, 50))
    def cancel(self, number: int) -> None:
        name = self.pick(number)
        found = self.cluster.list_partition_reassignments().get(name)
        refusal = self.cluster.alter_partition_reassignments({name: None})[name]
        if found is None:
            assert refusal is not None
            assert refusal.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        elif refusal is None:
            self.wanted[name] = self.cluster.replicas(name)
            assert set(self.wanted[name]) == set(found.replicas) - set(found.adding)

    @rule(number=st.integers(0, 50))
    def elect(self, number: int) -> None:
        name = self.pick(number)
        if self.cluster.elect_preferred_leaders([name])[name] is None:
            assert self.cluster.leader(name) == self.cluster.replicas(name)[0]

    @rule(broker=brokers)
    def kill(self, broker: int) -> None:
        self.cluster.faults.kill(broker)

    @rule(broker=brokers)
    def restart(self, broker: int) -> None:
        self.cluster.faults.restart(broker)

    @rule(broker=brokers, factor=st.sampled_from([0.01, 0.3, 1.0]), disk=st.booleans())
    def slow(self, broker: int, factor: float, disk: bool) -> None:
        (self.cluster.faults.slow_disk if disk else self.cluster.faults.slow_network)(broker, factor)

    @rule(throttle=st.sampled_from([None, 0.5 * MB, 3 * MB]))
    def set_throttle(self, throttle: float | None) -> None:
        self.cluster.throttle = throttle

    @rule(steps=st.integers(1, 8))
    def pass_time(self, steps: int) -> None:
        for _ in range(steps):
            before = self.cluster.logs.position.copy(), self.cluster.logs.end.copy()
            self.cluster.step(2)
            self.check_flows(*before)

    def check_flows(self, position: np.ndarray, end: np.ndarray) -> None:
        """One step: what arrives was sent, and no link carries more than it can or than the throttle lets it."""
        flows, columns = self.cluster.flows, self.cluster.brokers
        assert flows is not None
        slack = 1 + 1e-9
        tolerance = CLOSE * self.cluster.logs.host.size
        into = np.minimum(columns.network_in * columns.slow_network, columns.disk_write * columns.slow_disk)
        assert (flows.produced + flows.followed_in <= into * flows.seconds * slack + tolerance).all()
        out = columns.network_out * columns.slow_network
        assert (flows.consumed + flows.followed_out <= out * flows.seconds * slack + tolerance).all()
        np.testing.assert_allclose(flows.followed_in.sum(), flows.followed_out.sum(), rtol=1e-9)
        if self.cluster.throttle is not None:
            most = self.cluster.throttle * flows.seconds * slack + tolerance
            assert flows.throttled_in.max() <= most
            assert flows.throttled_out.max() <= most
        down = ~columns.up
        for amount in (flows.produced, flows.consumed, flows.followed_in, flows.followed_out):
            assert (amount[down] == 0.0).all()

    @invariant()
    def bytes_are_conserved(self) -> None:
        logs = self.cluster.logs
        held = logs.host >= 0
        accounted = logs.base + logs.received + logs.skipped - logs.truncated
        np.testing.assert_allclose(logs.position[held], accounted[held], rtol=1e-9, atol=1.0)
        assert (logs.start <= logs.end + 1e-6).all()

    @invariant()
    def broker_counters_add_up_to_their_replicas(self) -> None:
        """Disk gauges equal the sizes of what is hosted."""
        logs = self.cluster.logs
        total = self.cluster.counters()["disk"].sum()
        np.testing.assert_allclose(total, logs.sizes()[logs.host >= 0].sum())

    @invariant()
    def replica_lists_leaders_and_isrs_fit(self) -> None:
        moving = self.cluster.list_partition_reassignments()
        for name, entry in self.cluster.controller.partitions.items():
            replicas, isr, leader = entry.replicas, self.cluster.isr(name), self.cluster.leader(name)
            assert len(set(replicas)) == len(replicas)
            assert set(isr) <= set(replicas)
            assert isr  # a live replica always holds what was committed
            assert leader is None or leader in isr
            places = set(np.flatnonzero(self.cluster.logs.host[entry.row] >= 0).tolist())
            assert places == set(entry.place.values())
            assert set(entry.place) == set(replicas)
            if name not in moving:
                assert replicas == self.wanted[name]
            else:
                assert set(self.wanted[name]) <= set(replicas)

    @invariant()
    def nothing_committed_is_lost(self) -> None:
        """The high watermark, the least position in the ISR, never goes back."""
        logs = self.cluster.logs
        for entry in self.cluster.controller.partitions.values():
            watermark = float(logs.position[entry.row][logs.in_sync[entry.row]].min())
            assert watermark >= self.committed.get(entry.row, 0.0) - CLOSE * 2
            self.committed[entry.row] = watermark

    @invariant()
    def the_metadata_log_tells_the_whole_truth(self) -> None:
        image = MetadataImage()
        for at_ms, event in self.cluster.metadata_since(0):
            image.apply(event, at_ms)
        assert image.partition_count == len(self.cluster.controller.partitions)
        for name in self.names():
            slot = int(image.slots(image.topic_rows((name.topic,)), np.array([name.partition], dtype=np.int32))[0])
            told = tuple(b for b in image.replicas[slot].tolist() if b >= 0)
            assert told == self.cluster.replicas(name)
            assert image.in_sync(slot) == self.cluster.isr(name)
            leader = int(image.leader[slot])
            assert (None if leader < 0 else leader) == self.cluster.leader(name)
        fenced = {b for b, e in image.brokers.items() if e.fenced_since_ms is not None}
        assert fenced == {b for b, f in zip(self.cluster.brokers.ids, self.cluster.brokers.fenced, strict=True) if f}

    def check_all(self) -> None:
        self.bytes_are_conserved()
        self.broker_counters_add_up_to_their_replicas()
        self.replica_lists_leaders_and_isrs_fit()
        self.nothing_committed_is_lost()
        self.the_metadata_log_tells_the_whole_truth()

    def teardown(self) -> None:
        """Once everything is mended, every move ends and every replica is in sync again: no state is a dead end."""
        if not hasattr(self, "cluster"):
            return
        self.cluster.throttle = None
        for broker in range(1, BROKERS + 1):
            self.cluster.faults.restart(broker)
            self.cluster.faults.slow_disk(broker, 1.0)
            self.cluster.faults.slow_network(broker, 1.0)
        self.cluster.logs.produce[:] = 0.0
        self.cluster.brokers.disk[:] = 1e15
        assert self.cluster.run_until(
            lambda: (
                all(set(self.cluster.isr(n)) == set(self.wanted[n]) for n in self.names())
                and not self.cluster.list_partition_reassignments()
            ),
            limit_s=20_000,
            step_s=20,
        )
        for name in self.names():
            assert self.cluster.replicas(name) == self.wanted[name]


ClusterMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestClusterMachine = ClusterMachine.TestCase


@pytest.mark.parametrize("seed", range(8))
def test_long_lives_keep_the_invariants(seed: int) -> None:
    """Hypothesis prefers short stories, which it can shrink; these are long ones, with time between all operations."""
    random = np.random.default_rng(seed)
    machine = ClusterMachine()
    machine.start(seed=seed, noise=0.3)
    machine.set_throttle(throttle=MB)

    def replicas() -> tuple[int, ...]:
        return tuple((random.permutation(BROKERS)[: int(random.integers(1, 4))] + 1).tolist())

    moved = 0.0
    for _ in range(150):
        number, broker = int(random.integers(51)), int(random.integers(1, BROKERS + 1))
        match int(random.integers(14)):
            case 0:
                machine.create(assignment=[replicas()], rate=float(random.choice([0.0, 0.2, 3.0])))
            case 1 if len(machine.cluster.controller.topics) > 3:
                machine.delete(number=number)
            case 2 | 3 | 4 | 5 | 6:
                machine.reassign(number=number, goal=replicas())
            case 7:
                machine.cancel(number=number)
            case 8:
                machine.elect(number=number)
            case 9:
                machine.kill(broker=broker)
            case 10 | 11:
                machine.restart(broker=broker)
            case 12:
                machine.slow(broker=broker, factor=float(random.choice([0.01, 1.0, 1.0])), disk=number % 2 == 0)
            case _:
                machine.set_throttle(throttle=[None, 0.5 * MB, 3 * MB][number % 3])
        machine.pass_time(steps=int(random.integers(1, 6)))
        machine.check_all()
        assert machine.cluster.flows is not None
        moved += float(machine.cluster.flows.throttled_in.sum())
    machine.teardown()
    assert moved > 0.0
