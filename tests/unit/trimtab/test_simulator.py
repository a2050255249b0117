"""The simulated cluster must behave as Kafka does where executors and planners rely on it."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_model.metadata.events import BrokerFenced, BrokerUnfenced, PartitionChanged, TopicDeleted
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.scenario import growing_cluster
from trimtab.simulator.spec import GB, MB, BrokerSpec, ErrorCode, Refusal, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

P0 = TopicPartition("orders", 0)
P1 = TopicPartition("orders", 1)


def small_cluster(
    *, brokers: int = 4, produce: float = MB, retention: float = GB, network: float = 125 * MB
) -> SimulatedCluster:
    """Two full partitions, [1, 2, 3] and [2, 3, 1], steady traffic, the last broker empty."""
    specs = [BrokerSpec(i + 1, "abcd"[i % 4], network_in=network, network_out=network) for i in range(brokers)]
    cluster = SimulatedCluster(specs, traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    cluster.create_topic(
        TopicSpec("orders", ((1, 2, 3), (2, 3, 1)), np.full(2, produce), 2.0, np.full(2, retention), filled=1.0)
    )
    return cluster


def code(answer: Refusal | None) -> ErrorCode | None:
    return None if answer is None else answer.code


def test_equal_seeds_give_equal_clusters_to_the_last_byte() -> None:
    def run(seed: int) -> tuple[bytes, list[object]]:
        cluster = growing_cluster(seed, brokers=6, partitions=60)
        first = TopicPartition(*sorted(cluster.controller.partitions)[0])
        cluster.throttle = 5 * MB
        cluster.alter_partition_reassignments({first: (6, 5)})
        cluster.step(40)
        cluster.faults.kill(2)
        cluster.step(60)
        return cluster.logs.position.tobytes() + cluster.brokers.received.tobytes(), list(cluster.metadata_since(0))

    assert run(3) == run(3)
    assert run(3)[0] != run(4)[0]


def test_traffic_adds_up_at_every_broker() -> None:
    """1 MB/s into two partitions, three replicas, two consumers."""
    cluster = small_cluster()
    before = cluster.counters()
    cluster.step(100)
    after = cluster.counters()
    received = (after["received"] - before["received"]) / 100
    sent = (after["sent"] - before["sent"]) / 100
    assert received == pytest.approx([2 * MB, 2 * MB, 2 * MB, 0.0])
    assert sent == pytest.approx([4 * MB, 4 * MB, 0.0, 0.0])
    assert after["disk"] == pytest.approx([2 * GB, 2 * GB, 2 * GB, 0.0])


def test_logs_grow_until_retention_and_no_further() -> None:
    cluster = small_cluster(retention=50 * MB)
    cluster.create_topic(TopicSpec("young", ((4,),), np.array([MB]), 0.0, np.array([50 * MB])))
    cluster.step(30)
    assert cluster.counters()["disk"][3] == pytest.approx(30 * MB)
    cluster.step(100)
    assert cluster.counters()["disk"][3] == pytest.approx(50 * MB)


def test_a_reassignment_copies_at_the_throttle_then_joins_then_drops_the_old_replica() -> None:
    cluster = small_cluster(produce=0.0)
    cluster.throttle = 10 * MB
    assert cluster.alter_partition_reassignments({P0: (4, 2, 3)}) == {P0: None}
    progress = cluster.list_partition_reassignments()[P0]
    assert (progress.replicas, progress.adding, progress.removing) == ((4, 2, 3, 1), (4,), (1,))
    cluster.step(99)
    assert cluster.list_partition_reassignments()[P0].copied == pytest.approx(990 * MB)
    assert cluster.isr(P0) == (2, 3, 1)
    assert cluster.leader(P0) == 1
    cluster.step(1)
    assert cluster.list_partition_reassignments() == {}
    assert cluster.replicas(P0) == cluster.isr(P0) == (4, 2, 3)
    assert cluster.leader(P0) == 4  # the old leader is gone; the first in sync of the list leads
    assert cluster.counters()["disk"] == pytest.approx([GB, 2 * GB, 2 * GB, GB])


def test_the_throttle_holds_for_all_moves_of_a_broker_together() -> None:
    cluster = small_cluster()
    cluster.throttle = 10 * MB
    cluster.alter_partition_reassignments({P0: (4, 2, 3), P1: (2, 3, 4)})
    for _ in range(50):
        cluster.step(1)
        assert cluster.flows is not None
        assert cluster.flows.throttled_in.max() <= 10 * MB * (1 + 1e-9)
        assert cluster.flows.throttled_out.max() <= 10 * MB * (1 + 1e-9)
    assert cluster.flows is not None
    assert cluster.flows.throttled_in[3] == pytest.approx(10 * MB)


def test_a_throttle_below_the_produce_rate_never_finishes_and_cancel_restores() -> None:
    """What an operator does wrong most often: the move cannot catch up, however long one waits."""
    cluster = small_cluster(produce=20 * MB)
    cluster.throttle = 10 * MB
    cluster.alter_partition_reassignments({P0: (4, 2, 3)})
    assert not cluster.run_until(lambda: not cluster.list_partition_reassignments(), limit_s=2000)
    assert cluster.alter_partition_reassignments({P0: None}) == {P0: None}
    assert cluster.replicas(P0) == (1, 2, 3)
    assert cluster.counters()["disk"][3] == 0.0
    cluster.throttle = None
    cluster.alter_partition_reassignments({P0: (4, 2, 3)})
    assert cluster.run_until(lambda: not cluster.list_partition_reassignments(), limit_s=200)


def test_every_partition_of_a_request_has_its_own_answer() -> None:
    cluster = small_cluster(brokers=5)
    cluster.faults.kill(5)
    answers = cluster.alter_partition_reassignments(
        {
            TopicPartition("nobody", 0): (1, 2, 3),
            TopicPartition("orders", 9): None,
            P0: (1, 2, 99),
            P1: None,
        }
    )
    assert list(map(code, answers.values())) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ]
    for target, complaint in (((), "empty"), ((1, 1, 2), "twice"), ((1, 2, 5), "fenced or down")):
        refusal = cluster.alter_partition_reassignments({P0: target})[P0]
        assert refusal is not None
        assert complaint in refusal.message
    assert cluster.replicas(P0) == (1, 2, 3)
    assert cluster.list_partition_reassignments() == {}


def test_a_second_target_replaces_the_first_and_cancel_goes_back_to_the_start() -> None:
    cluster = small_cluster(brokers=5)
    cluster.throttle = MB
    cluster.alter_partition_reassignments({P0: (4, 2, 3)})
    cluster.alter_partition_reassignments({P0: (5, 2, 3)})
    found = cluster.list_partition_reassignments()[P0]
    assert (found.adding, found.removing) == ((5,), (1,))
    cluster.alter_partition_reassignments({P0: None})
    assert cluster.replicas(P0) == cluster.isr(P0) == (1, 2, 3)


def test_a_new_order_of_replicas_is_done_at_once_and_leadership_follows_an_election_only() -> None:
    cluster = small_cluster()
    cluster.alter_partition_reassignments({P0: (3, 2, 1)})
    assert cluster.list_partition_reassignments() == {}
    assert (cluster.replicas(P0), cluster.leader(P0)) == ((3, 2, 1), 1)
    assert cluster.elect_preferred_leaders([P0]) == {P0: None}
    assert cluster.leader(P0) == 3
    answers = cluster.elect_preferred_leaders([P0, TopicPartition("nobody", 1)])
    assert list(map(code, answers.values())) == [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_dead_broker_is_fenced_after_its_session_and_comes_back_in_sync() -> None:
    cluster = small_cluster()
    cluster.faults.kill(1)
    cluster.step(5)
    assert cluster.leader(P0) == 1  # not noticed yet; producers wait
    cluster.step(5)
    assert (cluster.leader(P0), cluster.isr(P0)) == (2, (2, 3))
    assert code(cluster.elect_preferred_leaders([P0])[P0]) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.step(50)
    cluster.faults.restart(1)
    assert cluster.run_until(lambda: cluster.isr(P0) == (1, 2, 3), limit_s=60, step_s=1)
    assert cluster.leader(P0) == 2
    kinds = [type(event) for _, event in cluster.metadata_since(0)]
    assert kinds.count(BrokerFenced) == kinds.count(BrokerUnfenced) == 1


def test_the_last_in_sync_replica_stays_in_the_isr_and_leads_again() -> None:
    cluster = small_cluster()
    for broker in (2, 3, 1):
        cluster.faults.kill(broker)
        cluster.step(20)
    assert (cluster.leader(P0), cluster.isr(P0)) == (None, (1,))
    cluster.faults.restart(2)
    cluster.step(20)
    assert cluster.leader(P0) is None  # broker 2 missed writes; electing it would lose them
    cluster.faults.restart(1)
    cluster.step(20)
    assert cluster.leader(P0) == 1


def test_a_broker_killed_during_a_move_holds_it_up_until_it_is_back() -> None:
    cluster = small_cluster()
    cluster.throttle = 50 * MB
    cluster.alter_partition_reassignments({P0: (4, 2, 3)})
    cluster.step(5)
    cluster.faults.kill(4)
    cluster.step(100)
    assert list(cluster.list_partition_reassignments()) == [P0]
    assert cluster.isr(P0) == (2, 3, 1)
    cluster.faults.restart(4)
    cluster.step(60)
    assert cluster.replicas(P0) == (4, 2, 3)


def test_a_replica_that_cannot_catch_up_stops_only_its_own_move() -> None:
    cluster = small_cluster()
    cluster.alter_partition_reassignments({P0: (4, 2, 3), P1: (2, 3, 4)})
    cluster.faults.stall(P0, 4)
    cluster.step(120)
    assert list(cluster.list_partition_reassignments()) == [P0]
    cluster.faults.stall(P0, 4, stalled=False)
    cluster.step(120)
    assert cluster.list_partition_reassignments() == {}


def test_a_slow_follower_falls_out_of_the_isr_and_recovers() -> None:
    cluster = small_cluster(produce=10 * MB)
    cluster.faults.slow_disk(3, 0.02)
    cluster.step(60)
    assert cluster.isr(P0) == (1, 2)
    cluster.faults.slow_disk(3, 1.0)
    cluster.step(60)
    assert cluster.isr(P0) == (1, 2, 3)


def test_a_slow_network_limits_what_goes_in_and_out() -> None:
    cluster = small_cluster(produce=10 * MB)
    cluster.faults.slow_network(1, 0.01)
    before = cluster.counters()
    cluster.step(10)
    after = cluster.counters()
    for counter in ("received", "sent"):
        assert after[counter][0] - before[counter][0] <= 10 * 1.25 * MB * (1 + 1e-9)


def test_a_full_disk_takes_no_more() -> None:
    specs = [BrokerSpec(1, None, disk=0.5 * GB), BrokerSpec(2, None)]
    cluster = SimulatedCluster(specs, traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    cluster.create_topic(TopicSpec("t", ((1,),), np.array([100 * MB]), 0.0, np.array([9 * GB])))
    cluster.step(60)
    assert cluster.counters()["disk"][0] <= 0.6 * GB


def test_a_refused_request_is_refused_once() -> None:
    cluster = small_cluster()
    cluster.faults.refuse_next(ErrorCode.REQUEST_TIMED_OUT)
    cluster.faults.refuse_next(ErrorCode.NOT_CONTROLLER, P1)
    answers = cluster.alter_partition_reassignments({P0: (2, 1, 3), P1: (3, 2, 1)})
    assert list(map(code, answers.values())) == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER]
    assert cluster.alter_partition_reassignments({P0: (2, 1, 3), P1: (3, 2, 1)}) == {P0: None, P1: None}


def test_topics_and_brokers_come_and_go() -> None:
    cluster = small_cluster()
    cluster.throttle = MB
    cluster.alter_partition_reassignments({P0: (4, 2, 3)})
    cluster.delete_topic("orders")
    cluster.step(10)
    assert cluster.list_partition_reassignments() == {}
    assert cluster.counters()["disk"].sum() == 0.0
    assert cluster.metadata_since(0)[-1][1] == TopicDeleted("orders")
    cluster.add_broker(BrokerSpec(9, "z"))
    cluster.create_topic(TopicSpec("orders", ((9, 1),), np.array([MB]), 1.0, np.array([GB])))
    cluster.step(10)
    assert cluster.isr(P0) == (9, 1)
    with pytest.raises(ValueError, match="only a fenced broker"):
        cluster.unregister_broker(9)
    with pytest.raises(ValueError, match="broker id 9 was used before"):
        cluster.add_broker(BrokerSpec(9))
    with pytest.raises(ValueError, match="not registered"):
        cluster.create_topic(TopicSpec("bad", ((77,),), np.array([MB])))


def test_the_metadata_log_tells_every_change_of_a_partition_in_order() -> None:
    cluster = small_cluster()
    cluster.alter_partition_reassignments({P0: (4, 2, 3)})
    cluster.step(60)
    told = [e for _, e in cluster.metadata_since(0) if isinstance(e, PartitionChanged) and e.partition == 0]
    assert [e.epoch for e in told] == list(range(1, len(told) + 1))
    assert [(e.replicas, e.adding, e.removing) for e in told] == [
        ((1, 2, 3), (), ()),
        ((4, 2, 3, 1), (4,), (1,)),
        ((4, 2, 3), (), ()),
    ]


def test_the_growing_cluster_is_what_it_says() -> None:
    cluster = growing_cluster(0)
    entries = cluster.controller.partitions.values()
    racks = {spec.id: spec.rack for spec in cluster.brokers.specs}
    assert len(entries) == 900
    assert all(len({racks[b] for b in e.replicas}) == 3 for e in entries)
    assert cluster.counters()["disk"][-2:].tolist() == [0.0, 0.0]
    assert cluster.brokers.specs[0].disk == 2 * cluster.brokers.specs[3].disk
    rates = np.sort(cluster.logs.produce)[::-1]
    assert rates[:90].sum() > 0.3 * rates.sum()  # a tenth of the partitions carries much of the load
