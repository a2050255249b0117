"""An approved plan is carried out wholly or says what was not, within the throttle, and leaves no throttle behind."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.plan import Change
from trimtab.execution.order import Order, tasks_of
from trimtab.executor import Progress
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.executor import SimulatedExecutor
from trimtab.simulator.spec import MB, BrokerSpec, ErrorCode, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

PARTITIONS = 12


@pytest.fixture
def cluster() -> SimulatedCluster:
    cluster = SimulatedCluster([BrokerSpec(i, None) for i in (1, 2, 3, 4)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    sizes = np.full(PARTITIONS, 100 * MB)
    cluster.create_topic(TopicSpec("t", ((1, 2),) * PARTITIONS, np.full(PARTITIONS, 0.1 * MB), 1.0, sizes, filled=1.0))
    return cluster


def change(number: int, after: tuple[int, ...], *, leader: int | None = None) -> Change:
    return Change("t", number, (1, 2), after, 1, after[0] if leader is None else leader)


MOVES = [change(i, (3, 2) if i % 2 else (4, 2)) for i in range(10)] + [change(10, (2, 1))]


def order(plan_id: str, changes: list[Change]) -> Order:
    return Order(plan_id, "simulated", tasks_of(changes), racks=False)


def run(cluster: SimulatedCluster, executor: SimulatedExecutor, *, limit: int = 600) -> Progress:
    for _ in range(limit):
        progress = executor.poll()
        if progress.finished:
            break
        cluster.step(1)
    return progress


def test_everything_of_the_plan_is_carried_out_and_the_throttle_is_gone(cluster: SimulatedCluster) -> None:
    executor = SimulatedExecutor(cluster, throttle=20 * MB, concurrency=2)
    executor.submit(order("sha256:x", MOVES))
    progress = run(cluster, executor)
    assert (progress.waiting, progress.moving, progress.done, progress.failed) == (0, 0, len(MOVES), ())
    for move in MOVES:
        name = TopicPartition(move.topic, move.partition)
        assert cluster.replicas(name) == move.replicas_after
        assert cluster.leader(name) == move.leader_after
    assert cluster.throttle is None
    assert progress.bytes_copied == progress.bytes_total == pytest.approx(10 * 100 * MB, rel=1e-3)


def test_no_broker_copies_more_replicas_at_once_than_allowed(cluster: SimulatedCluster) -> None:
    executor = SimulatedExecutor(cluster, throttle=20 * MB, concurrency=2)
    executor.submit(order("sha256:x", MOVES))
    most, last = 0, 0.0
    while not (progress := executor.poll()).finished:
        adding = [b for r in cluster.list_partition_reassignments().values() for b in r.adding]
        most = max([most, *(adding.count(b) for b in (3, 4))])
        assert progress.bytes_copied >= last
        last = progress.bytes_copied
        cluster.step(1)
        assert cluster.flows is not None
        assert cluster.flows.throttled_in.max() <= 20 * MB * (1 + 1e-9)
    assert most == 2


def test_a_leader_that_should_stay_is_not_changed(cluster: SimulatedCluster) -> None:
    executor = SimulatedExecutor(cluster, throttle=50 * MB)
    executor.submit(order("sha256:x", [change(0, (3, 1), leader=1)]))
    assert run(cluster, executor).done == 1
    assert cluster.leader(TopicPartition("t", 0)) == 1


def test_a_passing_refusal_is_tried_again(cluster: SimulatedCluster) -> None:
    cluster.faults.refuse_next(ErrorCode.REQUEST_TIMED_OUT)
    cluster.faults.refuse_next(ErrorCode.NOT_CONTROLLER)
    executor = SimulatedExecutor(cluster, throttle=50 * MB)
    executor.submit(order("sha256:x", MOVES))
    assert run(cluster, executor).done == len(MOVES)


def test_what_cannot_be_done_is_said_and_the_rest_is_done(cluster: SimulatedCluster) -> None:
    executor = SimulatedExecutor(cluster, throttle=50 * MB)
    executor.submit(order("sha256:x", [change(0, (99, 2)), Change("gone", 0, (1,), (2,), 1, 2), change(1, (3, 2))]))
    progress = run(cluster, executor)
    assert progress.done == 1
    reasons = {(f.topic, f.partition): f.reason for f in progress.failed}
    assert reasons["t", 0] == "its target, broker 99, is not registered"
    assert reasons["gone", 0] == "there is no such partition any more"


def test_a_partition_that_another_tool_changed_is_not_counted_as_done(cluster: SimulatedCluster) -> None:
    executor = SimulatedExecutor(cluster, throttle=10 * MB)
    executor.submit(order("sha256:x", [change(0, (3, 2)), change(1, (4, 2))]))
    executor.poll()
    cluster.step(2)
    executor.poll()
    cluster.alter_partition_reassignments({TopicPartition("t", 0): None})
    progress = run(cluster, executor)
    assert progress.done == 1
    assert [f.partition for f in progress.failed] == [0]
    assert "another tool" in progress.failed[0].reason


def test_a_topic_deleted_meanwhile_ends_its_moves(cluster: SimulatedCluster) -> None:
    executor = SimulatedExecutor(cluster, throttle=10 * MB)
    executor.submit(order("sha256:x", MOVES))
    executor.poll()
    cluster.delete_topic("t")
    progress = run(cluster, executor)
    assert progress.finished
    assert len(progress.failed) == len(MOVES)


def test_cancel_takes_back_what_is_in_progress_and_leaves_no_throttle(cluster: SimulatedCluster) -> None:
    executor = SimulatedExecutor(cluster, throttle=10 * MB, concurrency=2)
    executor.submit(order("sha256:x", MOVES))
    executor.poll()
    cluster.step(3)
    progress = executor.cancel()
    assert progress.finished
    assert cluster.list_partition_reassignments() == {}
    assert cluster.throttle is None
    assert cluster.replicas(TopicPartition("t", 0)) == (1, 2)
    assert progress.done + len(progress.failed) == len(MOVES)


def test_one_plan_at_a_time(cluster: SimulatedCluster) -> None:
    executor = SimulatedExecutor(cluster, throttle=10 * MB)
    executor.submit(order("sha256:x", MOVES))
    with pytest.raises(ValueError, match="one plan at a time"):
        executor.submit(order("sha256:y", MOVES))


def test_released_it_touches_nothing_and_forgets_the_plan(cluster: SimulatedCluster) -> None:
    """Another instance decides now: cancelling would fight with what that one does."""
    executor = SimulatedExecutor(cluster, throttle=20 * MB, concurrency=2)
    executor.submit(order("sha256:x", MOVES))
    executor.poll()
    moving = cluster.list_partition_reassignments().keys()
    progress = executor.release()
    assert progress.finished
    assert len(progress.failed) == len(MOVES)
    assert cluster.list_partition_reassignments().keys() == moving
    executor.submit(order("sha256:y", MOVES[-1:]))
