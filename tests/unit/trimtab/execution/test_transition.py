"""The next safe steps: what must not start, what comes first, and what is given up with which reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trimtab.execution.state import Limits, Mark, Observed, Partition, SeenBroker, SeenPartition, Stage, Task
from trimtab.execution.transition import Turn, next_steps

LIMITS = Limits(into=5, out_of=5, cluster=10, elections=2, reserve=10.0, patience_ms=1000)


def name(number: int) -> Partition:
    return Partition("t", number)


def task(number: int, source: tuple[int, ...], target: tuple[int, ...], **more: Any) -> Task:
    return Task(name(number), source, target, source[0], target[0], **more)


def seen(partitions: Mapping[int, SeenPartition | tuple[int, ...]], *, min_isr: int = 1, **brokers: SeenBroker) -> Observed:
    """Brokers 1 to 6, each a rack of its own; a replica list alone is wholly in sync."""
    known = {b: brokers.get(f"b{b}", SeenBroker(f"r{b}")) for b in range(1, 7)}
    there = {
        name(n): p if isinstance(p, SeenPartition) else SeenPartition(p, p, p[0]) for n, p in partitions.items()
    }
    return Observed("c", 0, known, there, {"t": min_isr})


def steps(tasks: list[Task], at: Observed, marks: Mapping[Partition, Mark] | None = None, **more: Any) -> Turn:
    return next_steps(tasks, marks or {}, at, more.pop("limits", LIMITS), **more)


def started(turn: Turn) -> list[int]:
    return [t.name.number for t in turn.begin]


def test_no_step_leaves_fewer_replicas_in_sync() -> None:
    lagging = SeenPartition((1, 2, 3), (1, 2), 1)
    dropped = [task(0, (1, 2, 3), (2, 3))]  # 3 lags: only 2 would be left
    turn = steps(dropped, seen({0: lagging}), lagging_before=frozenset({name(0)}))
    assert started(turn) == []
    assert turn.waits == "waits: t-0 would have fewer replicas in sync"
    replaced = [task(0, (1, 2, 3), (1, 2, 4))]
    assert started(steps(replaced, seen({0: lagging}), lagging_before=frozenset({name(0)}))) == [0]


def test_nothing_starts_while_a_partition_of_involved_brokers_is_under_min_isr() -> None:
    under: dict[int, SeenPartition | tuple[int, ...]] = {0: (1, 2), 1: SeenPartition((2, 3), (2,), 2)}
    turn = steps([task(0, (1, 2), (4, 2))], seen(under, min_isr=2), lagging_before=frozenset({name(1)}))
    assert started(turn) == []
    assert turn.waits == "waits: t-1 is under min.insync.replicas on brokers that the next steps touch"
    apart = seen({0: (1, 2), 1: SeenPartition((5, 6), (5,), 5)}, min_isr=2)
    assert started(steps([task(0, (1, 2), (4, 2))], apart, lagging_before=frozenset({name(1)}))) == [0]


def test_partitions_that_fall_behind_elsewhere_hold_all_but_repairs() -> None:
    down = SeenBroker("r3", alive=False)
    at = seen({0: (1, 2), 1: SeenPartition((3, 2), (2,), 2), 2: SeenPartition((5, 6), (5,), 5)}, b3=down)
    tasks = [task(0, (1, 2), (4, 2)), task(1, (3, 2), (4, 2))]
    assert started(steps(tasks, at, lagging_before=frozenset({name(1)}))) == [1]
    assert started(steps(tasks, at, lagging_before=frozenset({name(1), name(2)}))) == [1, 0]


def test_drained_space_comes_before_filled_space() -> None:
    """Broker 4 is full until t-0 has left it, though t-1 is worth more."""
    tasks = [task(0, (4, 2), (5, 2), size=100.0), task(1, (1, 2), (4, 2), size=100.0, value=9.0)]
    full = seen({0: (4, 2), 1: (1, 2)}, b4=SeenBroker("r4", free=50.0))
    turn = steps(tasks, full)
    assert started(turn) == [0]
    gone = seen({0: (5, 2), 1: (1, 2)}, b4=SeenBroker("r4", free=150.0))
    assert started(steps(tasks, gone, turn.marks)) == [1]


def test_room_counts_the_rest_of_copies_in_progress_and_the_reserve() -> None:
    moving = SeenPartition((4, 2, 1), (1, 2), 1, (4,), (1,))
    tasks = [task(0, (1, 2), (4, 2), size=100.0), task(1, (1, 2), (4, 2), size=100.0)]
    marks = {name(0): Mark(Stage.MOVING, touched=True)}
    for free, expected in ((169.0, []), (170.0, [1])):  # 60 are still to come, 100 are needed, 10 stay free
        at = replace(seen({0: moving, 1: (1, 2)}, b4=SeenBroker("r4", free=free)), copied={name(0): 40.0})
        assert started(steps(tasks, at, marks)) == expected


def test_what_never_gets_room_is_given_up_with_the_numbers() -> None:
    turn = steps([task(0, (1, 2), (4, 2), size=100.0)], seen({0: (1, 2)}, b4=SeenBroker("r4", free=50.0)))
    assert turn.marks[name(0)] == Mark(Stage.SKIPPED, "no room on broker 4: 100 B to copy, 40 B free beyond the reserve of 10 B")
    soon = steps([task(0, (1, 2), (4, 2), size=100.0)], seen({0: (1, 2)}, b4=SeenBroker("r4", free=50.0)), freeing=True)
    assert (soon.marks, soon.waits) == ({}, turn.marks[name(0)].reason)


def test_limits_count_what_other_tools_move() -> None:
    other = SeenPartition((4, 2, 1), (1, 2), 1, (4,), (1,))
    turn = steps([task(0, (1, 2), (4, 2))], seen({0: (1, 2), 1: other}), limits=replace(LIMITS, into=1))
    assert started(turn) == []
    assert turn.waits == "waits: 1 replicas are being copied into broker 4, the limit is 1"


def test_most_valuable_first_and_repairs_before_all() -> None:
    down = SeenBroker("r3", alive=False)
    tasks = [task(0, (1, 2), (4, 2), value=1.0), task(1, (1, 2), (5, 2), value=2.0), task(2, (3, 2), (6, 2))]
    at = seen({0: (1, 2), 1: (1, 2), 2: SeenPartition((3, 2), (2,), 2)}, b3=down)
    assert started(steps(tasks, at, lagging_before=frozenset({name(2)}))) == [2, 1, 0]


def test_replicas_are_not_brought_together_in_a_rack() -> None:
    turn = steps([task(0, (1, 2), (4, 2))], seen({0: (1, 2)}, b4=SeenBroker("r2")))
    assert turn.marks[name(0)].reason == "its replicas would stand in fewer racks: 1, not 2"


def test_a_target_that_is_down_for_long_turns_its_step_around() -> None:
    moving = seen({0: SeenPartition((4, 2, 1), (1, 2), 1, (4,), (1,))}, b4=SeenBroker("r4", alive=False, down_ms=2000))
    tasks = [task(0, (1, 2), (4, 2))]
    turn = steps(tasks, moving, {name(0): Mark(Stage.MOVING, touched=True)})
    (back,) = turn.turned
    assert (back.target, back.undo, back.why) == ((1, 2), "cancel", "its target, broker 4, is down")
    again = steps([back], moving, turn.marks)
    assert [t.name for t in again.take_back] == [name(0)]
    # Kafka leaves the list in another order than before: that is mended without a copy.
    turned = seen({0: SeenPartition((2, 1), (1, 2), 1)}, b4=SeenBroker("r4", alive=False, down_ms=2000))
    assert started(steps([back], turned, {**turn.marks, **again.marks})) == [0]


def test_leaders_follow_when_no_move_is_left_so_many_at_a_time() -> None:
    tasks = [task(n, (1, 2), (2, 1)) for n in range(3)]
    placed = seen({n: SeenPartition((2, 1), (1, 2), 1) for n in range(3)})
    moving = seen({0: SeenPartition((2, 1), (1, 2), 1), 1: (1, 2), 2: (1, 2)})
    assert steps(tasks, moving).elect == ()
    turn = steps(tasks, placed)
    assert [t.name.number for t in turn.elect] == [0, 1]
    assert steps(tasks, placed, turn.marks, elected=2).waits == "waits for the next interval of elections"


def test_what_drifted_is_left_alone_and_what_another_tool_moves_is_waited_for() -> None:
    tasks = [task(0, (1, 2), (4, 2)), task(1, (1, 2), (4, 2))]
    at = seen({0: (1, 3), 1: SeenPartition((5, 1, 2), (1, 2), 1, (5,), (2,))})
    turn = steps(tasks, at)
    assert turn.marks[name(0)] == Mark(Stage.SKIPPED, "its replicas are [1, 3], not [1, 2] as the plan was made for")
    assert turn.waits == "waits: another tool reassigns t-1 to [5, 1]"


def test_a_pause_lets_nothing_start_and_says_so() -> None:
    turn = steps([task(0, (1, 2), (4, 2))], seen({0: (1, 2)}), held="paused by anna")
    assert (turn.begin, turn.waits) == ((), "paused by anna")


def test_a_leader_that_went_away_before_the_end_is_elected_again() -> None:
    """Its broker was restarted after its partition was done: without a look back the plan's leaders would not stand."""
    tasks = [task(0, (1, 2), (4, 2)), task(1, (1, 2), (5, 2))]
    marks = {name(0): Mark(Stage.DONE, touched=True), name(1): Mark(Stage.MOVING, touched=True)}
    moved = seen({0: SeenPartition((4, 2), (4, 2), 2), 1: SeenPartition((5, 2), (5, 2), 5)})
    turn = steps(tasks, moved, marks)
    assert [t.name.number for t in turn.elect] == [0]
    assert turn.marks[name(1)].stage is Stage.DONE


def test_replicas_are_not_taken_below_min_isr() -> None:
    """Every producer with acks=all would be refused from then on."""
    turn = steps([task(0, (1, 2, 3), (1,))], seen({0: (1, 2, 3)}, min_isr=2))
    assert turn.marks[name(0)].stage is Stage.SKIPPED
    assert "it would have one replica, and min.insync.replicas is 2" in turn.marks[name(0)].reason
    assert started(steps([task(0, (1, 2, 3), (1, 2))], seen({0: (1, 2, 3)}, min_isr=2))) == [0]
    raised = task(0, (1,), (1, 2, 3)).back("rollback", "by anna")
    assert started(steps([raised], seen({0: (1, 2, 3)}, min_isr=2))) == [0], "it was so before"


def test_later_batches_wait_but_for_repairs_and_what_goes_back() -> None:
    down = SeenBroker("r3", alive=False)
    at = seen({0: (1, 2), 1: (1, 2), 2: SeenPartition((3, 2), (2,), 2), 3: (5, 2)}, b3=down)
    tasks = [
        task(0, (1, 2), (4, 2), batch=1), task(1, (1, 2), (4, 2), batch=2), task(2, (3, 2), (4, 2), batch=2),
        task(3, (1, 2), (5, 2), batch=2).back("rollback", "by anna"),
    ]  # fmt: skip
    turned = {name(3): Mark(touched=True)}
    assert started(steps(tasks, at, turned, lagging_before=frozenset({name(2)}), batch=1)) == [2, 0, 3]
    assert started(steps(tasks, at, turned, lagging_before=frozenset({name(2)}), batch=2)) == [2, 0, 1, 3]


def test_room_that_only_a_later_batch_makes_lets_it_start() -> None:
    """Else the first batch would be given up for lack of room."""
    tasks = [task(0, (1, 2), (4, 2), size=100.0, batch=1), task(1, (4, 2), (5, 2), size=100.0, batch=2)]
    full = seen({0: (1, 2), 1: (4, 2)}, b4=SeenBroker("r4", free=50.0))
    turn = steps(tasks, full, batch=1)
    assert (started(turn), name(0) in turn.marks) == ([1], False)
    assert started(steps(tasks, full, batch=1, freeing=True)) == []
    gone = seen({0: (1, 2), 1: (5, 2)}, b4=SeenBroker("r4", free=150.0))
    assert started(steps(tasks, gone, turn.marks, batch=1)) == [0]
