"""The first command a stranger runs: it must end well, say what happened, and do in the cluster what the plan said."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError, ExternalError
from cluster_model.snapshot import Snapshot
from goals.document import load_goals
from optimizer.plan import Change, Plan
from trimtab.demo import TOPIC_FILE, Demo, DemoOptions, deviations
from trimtab.executor import Progress


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    return Demo(DemoOptions(seed=1, brokers=6, partitions=240), tmp_path)


def placed(snapshot: Snapshot) -> dict[tuple[str, int], tuple[tuple[int, ...], int]]:
    """Replica list and leader of every partition, by wire id."""
    ids = snapshot.broker_ids
    return {
        (snapshot.topics[t], int(n)): (tuple(int(ids[r]) for r in rows if r >= 0), int(ids[leader]))
        for t, n, rows, leader in zip(
            snapshot.partition_topic, snapshot.partition_number, snapshot.replicas, snapshot.leader, strict=True
        )
    }


def carried_out(demo: Demo, plan: Plan) -> Progress:
    return list(demo.execute(plan))[-1]


def test_the_cluster_ends_where_the_plan_said(demo: Demo) -> None:
    before = demo.measure()
    plan = demo.plan(before, load_goals(None, preset="default"))
    assert plan.summary.replica_moves > 0
    progress = carried_out(demo, plan)
    assert (progress.done, progress.failed) == (len(plan.proposals), ())
    assert demo.cluster.throttle is None
    after = demo.measure()
    expected = placed(before)
    for change in plan.proposals:
        assert change.leader_after is not None
        expected[change.topic, change.partition] = (change.replicas_after, change.leader_after)
    assert placed(after) == expected
    for deviation in deviations(plan, after):
        # Counts are exact; rates are noisy (5 % per partition), and cpu is attributed.
        exact = deviation.resource in ("replicas", "leaders")
        assert deviation.largest <= (0.0 if exact else 0.08), deviation
    assert demo.measured.decode_errors == 0


def test_new_brokers_are_filled(demo: Demo) -> None:
    """The last broker is new and empty; after the execution it works as the others of its capacity do."""
    before = demo.measure()
    assert before.broker_load("disk")[-1] == 0.0
    plan = demo.plan(before, load_goals(None, preset="default"))
    carried_out(demo, plan)
    after = demo.measure()
    share = after.broker_load("network_in") / after.capacity["network_in"]
    assert share[-1] > 0.75 * share.mean()


def test_a_broker_lost_in_the_middle_is_told_and_everything_else_done(demo: Demo) -> None:
    plan = demo.plan(demo.measure(), load_goals(None, preset="default"))
    target = plan.brokers[-1].id
    changes: dict[bool, list[Change]] = {True: [], False: []}
    for change in plan.proposals:
        changes[target in change.replicas_after].append(change)
    steps = demo.execute(plan)
    next(steps)
    demo.cluster.faults.kill(target)
    demo.cluster.step(20)
    for _, progress in zip(range(2000), steps, strict=False):
        if progress.finished:
            break
    assert progress.finished, "what goes to a broker that is gone is taken back, and nothing waits for it"
    assert progress.done >= len(changes[False])
    assert {(f.topic, f.partition) for f in progress.failed} <= {(c.topic, c.partition) for c in changes[True]}
    assert {f.reason for f in progress.failed} == {f"its target, broker {target}, is down"}
    # A broker takes a change of its own settings only from itself, so its throttle is there until it is back.
    assert set(demo.cluster.configs) == {("broker", str(target))}
    assert demo.cluster.list_partition_reassignments() == {}


def test_equal_seeds_tell_equal_stories(tmp_path: Path) -> None:
    def plan_of(folder: str) -> tuple[str, list[Change]]:
        (tmp_path / folder).mkdir()
        demo = Demo(DemoOptions(seed=7, brokers=5, partitions=60), tmp_path / folder)
        plan = demo.plan(demo.measure(), load_goals(None, preset="counts"))
        return plan.plan_id, list(plan.proposals)

    assert plan_of("a") == plan_of("b")


def test_an_earlier_run_in_the_same_folder_does_not_leak_in(tmp_path: Path) -> None:
    first = Demo(DemoOptions(seed=1, brokers=5, partitions=60), tmp_path)
    first.measure(60)
    first.close()
    second = Demo(DemoOptions(seed=2, brokers=5, partitions=60), tmp_path)
    second.measure(60)
    assert second.measured.records == 2 * 5
    assert second.model.counts.unknown == 0


def test_a_folder_whose_topic_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / TOPIC_FILE).write_bytes(b"somebody else's file" * 50)
    with pytest.raises(ExternalError, match="expected a topic file"):
        Demo(DemoOptions(brokers=5, partitions=60), tmp_path)


def test_too_small_a_cluster_names_all_problems() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Demo(DemoOptions(brokers=2, partitions=1), Path("unused"))
    assert [p.place for p in caught.value.problems] == ["--brokers", "--partitions"]
