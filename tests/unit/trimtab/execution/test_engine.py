"""What the engine makes of brokers that go, and of looks that come from brokers that are behind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings, header_of
from trimtab.execution.engine import APART_SECONDS, LOOKS, Execution
from trimtab.execution.ledger import HEADER, Fenced, MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.port import Answers
from trimtab.execution.progress import Standing
from trimtab.execution.run import sentence
from trimtab.execution.state import Limits, Observed, Partition, SeenPartition, Stage, Task
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

NAME = Partition("t", 0)


class OlderKafka(SimulatedPort):
    """Describes no broker that is down, as Kafka before 4.0."""

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        seen = super().look(names, brokers, topics)
        return replace(seen, brokers={b: known for b, known in seen.brokers.items() if known.alive})


class Behind(SimulatedPort):
    """Tells of both replica lists for some looks after a reassignment is complete."""

    looks = 0

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self.asked: list[object] = []  # times that the old replica was asked to go

    def reassign(self, targets: Mapping[Partition, tuple[int, ...] | None]) -> Answers:
        self.asked += [t for t in targets.values() if t == (3, 2)]
        return super().reassign(targets)

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        seen = super().look(names, brokers, topics)
        there = seen.partitions[NAME]
        if self.looks and not there.reassigning and there.replicas == (3, 2):
            self.looks -= 1
            return replace(seen, partitions={NAME: SeenPartition((1, 2, 3), (1, 2, 3), 2)})
        return seen


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    made.create_topic(TopicSpec("t", ((1, 2),), np.zeros(1), 1.0, np.full(1, 100 * MB), filled=1.0))
    return made


def clock(cluster: SimulatedCluster) -> Clock:
    return Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)


def begun(
    cluster: SimulatedCluster, port: SimulatedPort, throttle: float, *, shared: MemoryDocuments | None = None, **more: Any
) -> Execution:
    execution = Execution(port, MemoryLedger(shared), clock(cluster), instance="here")
    order = Order("sha256:x", cluster.cluster_id, (Task(NAME, (1, 2), (3, 2), 1, 3),), racks=False, **more)
    execution.begin(order, Settings(throttle=round(throttle), limits=Limits(patience_ms=60_000, reserve=0.0)))
    return execution


def test_a_target_that_is_not_described_any_more_gets_its_time(cluster: SimulatedCluster) -> None:
    """It may be restarting: only after a minute its step is taken back."""
    execution = begun(cluster, OlderKafka(cluster), 1 * MB)
    execution.turn()
    cluster.faults.kill(3)
    cluster.step(15)
    for _ in range(5):
        execution.turn()
        cluster.step(10)
    assert execution.marks[NAME].stage is Stage.MOVING
    for _ in range(10):
        if execution.turn().over:
            break
        cluster.step(10)
    assert execution.marks[NAME].stage is Stage.BACK
    assert execution.marks[NAME].reason == "its target, broker 3, is down"
    assert cluster.replicas(TopicPartition("t", 0)) == (1, 2)


@pytest.mark.parametrize(("looks", "stage", "asked"), [(LOOKS - 1, Stage.DONE, 1), (LOOKS + 1, Stage.DONE, 3), (1000, Stage.FAILED, 5)])
def test_a_broker_that_is_behind_is_not_believed_at_once(looks: int, stage: Stage, asked: int, cluster: SimulatedCluster) -> None:
    """The old replica is asked to go again after a while, and given up in the end."""
    port = Behind(cluster)
    execution = begun(cluster, port, 50 * MB)
    port.looks = looks
    for _ in range(90):
        if execution.turn().over:
            break
        cluster.step(1)
    assert execution.marks[NAME].stage is stage
    assert len(port.asked) == asked


def test_the_report_sets_what_was_made_against_the_plan(cluster: SimulatedCluster) -> None:
    """The partition has grown since it was planned for, and the throttle took its time."""
    execution = begun(cluster, SimulatedPort(cluster), 10 * MB, bytes_planned=80e6)
    for _ in range(60):
        if execution.turn().over:
            break
        cluster.step(1)
    found = execution.standing()
    assert found is not None
    assert (found.report.bytes_planned, found.report.bytes_made) == (80e6, 100e6)
    assert found.report.seconds_planned == 10.0
    assert found.report.seconds is not None
    assert 10.0 <= found.report.seconds <= 20.0


@pytest.mark.parametrize("copied", [False, True], ids=["in the middle", "when all is copied"])
def test_an_instance_that_was_deposed_leaves_throttles_alone(copied: bool, cluster: SimulatedCluster) -> None:
    """It was cut off for long; the other one has come to the end meanwhile, or is on its way, with throttles of its own."""
    shared = MemoryDocuments()
    first = begun(cluster, SimulatedPort(cluster), 1 * MB, shared=shared)
    first.turn()
    other = Execution(SimulatedPort(cluster), MemoryLedger(shared), clock(cluster), instance="there")
    assert other.adopt()
    if copied:
        cluster.throttle = None
        assert cluster.run_until(lambda: not cluster.list_partition_reassignments(), limit_s=600, step_s=1.0)
        theirs = dict(cluster.configs)
    else:
        while not other.turn().over:
            cluster.step(10)
        theirs = {}
        assert cluster.configs == theirs
        cluster.alter_partition_reassignments({TopicPartition(*NAME): (1, 2)})  # so that there is something to do for the first
    with pytest.raises(Fenced):
        first.turn()
    assert cluster.configs == theirs


@pytest.mark.parametrize(("before", "after"), [((1, 2), (1, 2, 3)), ((1, 2, 3), (1, 3)), ((1, 2, 3), (2,)), ((1,), (1, 2, 3))])
def test_replication_factors_are_changed_and_taken_back(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    cluster.create_topic(TopicSpec("t", (before,), np.zeros(1), 1.0, np.full(1, 100 * MB), filled=1.0))
    execution = Execution(SimulatedPort(cluster), MemoryLedger(), clock(cluster), instance="here")
    order = Order("sha256:x", cluster.cluster_id, (Task(NAME, before, after, before[0], after[0]),), racks=False)
    execution.begin(order, Settings(throttle=round(50 * MB), limits=Limits(reserve=0.0)))

    def ended() -> Standing:
        for _ in range(60):
            found = execution.turn()
            if found.over:
                return found
            cluster.step(1)
        raise AssertionError("it did not end")

    done = ended()
    assert (done.state, cluster.replicas(TopicPartition("t", 0)), cluster.leader(TopicPartition("t", 0))) == ("done", after, after[0])
    assert done.report.bytes_made == pytest.approx(100 * MB * max(len(after) - len(before), 0), rel=0.01)
    execution.rollback("anna")
    assert ended().state == "rolled back"
    assert (cluster.replicas(TopicPartition("t", 0)), cluster.leader(TopicPartition("t", 0))) == (before, before[0])
    assert cluster.configs == {}


def test_on_shared_storage_leader_gaps_are_counted_and_limited_and_nothing_is_throttled() -> None:
    """One replica, nothing to copy: a thousand partitions would be without a leader in the same second."""
    count, most = 12, 3
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    cluster.create_topic(TopicSpec("t", ((1,),) * count, np.zeros(count), 1.0, np.full(count, 1.0)))
    tasks = tuple(Task(Partition("t", n), (1,), (2 + n % 2,), 1, 2 + n % 2) for n in range(count))
    execution = Execution(SimulatedPort(cluster), MemoryLedger(), clock(cluster), instance="here")
    limits = Limits(into=50, out_of=50, elections=most, election_ms=1_000, reserve=0.0)
    execution.begin(Order("sha256:x", cluster.cluster_id, tasks, shared=True), Settings(throttle=round(50 * MB), limits=limits))
    begun_by_turn = []
    for _ in range(60):
        before = sum(m.touched for m in execution.marks.values())
        found = execution.turn()
        begun_by_turn.append(sum(m.touched for m in execution.marks.values()) - before)
        assert cluster.configs == {}
        if found.over:
            break
        cluster.step(1)
    assert (found.state, found.gaps, found.bytes_total) == ("done", count, 0.0)
    assert max(begun_by_turn) == most
    assert {cluster.leader(TopicPartition("t", n)) for n in range(count)} == {2, 3}


# -- new replicas are added first, and old ones go a few at a time ----------------------------------------------------


class Asked(SimulatedPort):
    """Counts requests by which replicas go."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self.exchanges: list[int] = []  # partitions in each

    def reassign(self, targets: Mapping[Partition, tuple[int, ...] | None]) -> Answers:
        going = [n for n, t in targets.items() if t is not None and set(self._cluster.replicas(TopicPartition(*n))) - set(t)]
        self.exchanges += [len(going)] if going else []
        return super().reassign(targets)


COUNT = 6


def many(pause: Callable[[float], Any] = lambda seconds: None, **limits: Any) -> tuple[SimulatedCluster, Asked, MemoryDocuments, Execution]:
    made = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    made.create_topic(TopicSpec("t", ((1, 2),) * COUNT, np.zeros(COUNT), 1.0, np.full(COUNT, 100 * MB), filled=1.0))
    port, shared = Asked(made), MemoryDocuments()
    execution = Execution(port, MemoryLedger(shared), clock(made), instance="here", pause=pause)
    order = Order("sha256:x", made.cluster_id, tuple(Task(Partition("t", n), (1, 2), (3, 2), 1, 3) for n in range(COUNT)), racks=False)
    execution.begin(order, Settings(throttle=round(50 * MB), limits=Limits(into=2, out_of=2, reserve=0.0, **limits)))
    return made, port, shared, execution


def ended(made: SimulatedCluster, execution: Execution) -> Standing:
    for _ in range(90):
        found = execution.turn()
        if found.over:
            return found
        made.step(1)
    raise AssertionError("it did not end")


def test_old_replicas_go_by_one_request_for_each_partition_and_a_few_in_a_second() -> None:
    """In one request followers hear of all before their leader has come to each, and producers wait for a second or two."""
    pauses: list[float] = []
    made, port, _, execution = many(pauses.append, exchange=2)
    begin = made.now_ms
    assert ended(made, execution).state == "done"
    assert port.exchanges == [1] * COUNT
    assert made.now_ms - begin >= 1000 * (COUNT / 2 - 1)
    assert pauses == [APART_SECONDS] * (COUNT // 2), "brokers that are behind would hear of two at once, too"
    assert {made.leader(TopicPartition("t", n)) for n in range(COUNT)} == {3}


def test_an_instance_that_is_deposed_between_two_requests_asks_for_nothing_more() -> None:
    made, port, shared, execution = many(lambda seconds: other.adopt())
    other = Execution(SimulatedPort(made), MemoryLedger(shared), clock(made), instance="there")
    with pytest.raises(Fenced):
        ended(made, execution)
    assert port.exchanges == [1]
    assert ended(made, other).state == "done"


def waiting(execution: Execution) -> list[Partition]:
    """Copied, and nothing was asked for since."""
    return [n for n, m in execution.marks.items() if m.stage is Stage.ADDED and not m.attempts]


def until_added(made: SimulatedCluster, execution: Execution) -> None:
    for _ in range(60):
        execution.turn()
        if waiting(execution):
            return
        made.step(1)
    raise AssertionError("nothing was added")


@pytest.mark.parametrize("verb", ["goes on", "cancel", "finish", "rollback"])
def test_another_instance_knows_what_was_added_and_waits(verb: str) -> None:
    """The one that added it was killed, and the cluster shows both lists with no reassignment."""
    made, _, shared, first = many(exchange=1)
    until_added(made, first)
    added = waiting(first)
    assert {made.replicas(TopicPartition(*n)) for n in added} == {(1, 2, 3)}
    other = Execution(SimulatedPort(made), MemoryLedger(shared), clock(made), instance="there")
    assert other.adopt()
    if verb == "rollback":
        other.rollback("anna")
    elif verb != "goes on":
        other.cancel("anna", "finish" if verb == "finish" else "take back")
    found = ended(made, other)
    lists = {n: made.replicas(TopicPartition("t", n)) for n in range(COUNT)}
    match verb:
        case "goes on":
            assert set(lists.values()) == {(3, 2)}
        case "finish":
            assert {lists[n.number] for n in added} == {(3, 2)}
            assert (1, 2) in lists.values()
        case "cancel":
            assert {lists[n.number] for n in added} == {(1, 2)}
            assert set(lists.values()) <= {(1, 2), (3, 2)}
        case _:
            assert set(lists.values()) == {(1, 2)}
            assert {made.leader(TopicPartition("t", n)) for n in range(COUNT)} == {1}
    assert made.configs == {}
    assert found.throttles_left == 0


def test_a_paused_execution_keeps_what_it_added_and_tells() -> None:
    made, port, _, execution = many(exchange=1)
    until_added(made, execution)
    execution.pause("anna")
    before = len(port.exchanges)
    for _ in range(20):
        found = execution.turn()
        made.step(1)
    assert (found.waits, len(port.exchanges)) == ("paused by anna", before)
    assert "0 in progress, 3 copied, whose old replicas are still to go; 400 MB of 600 MB copied" in sentence(found)
    execution.resume()
    assert ended(made, execution).state == "done"


def test_a_dead_target_takes_back_what_was_added_to_it() -> None:
    made, _, _, execution = many(exchange=1)
    until_added(made, execution)
    made.faults.kill(3)
    added = waiting(execution)
    for _ in range(60):
        if execution.turn().over:
            break
        made.step(10)
    assert {made.replicas(TopicPartition(*n)) for n in added} == {(1, 2)}
    assert {execution.marks[n].reason for n in added} == {"its target, broker 3, is down"}


def test_an_execution_of_an_earlier_release_goes_on_partition_by_partition() -> None:
    """Of one on shared storage it is not written down that it is: it must not begin to add replicas."""
    _, _, shared, _ = many()
    document = MemoryLedger(shared).read()[HEADER]
    del document["settings"]["limits"]["exchange"]
    header = header_of({HEADER: document})
    assert header is not None
    assert header.settings.limits.exchange == 0
