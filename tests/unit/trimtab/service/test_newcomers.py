"""A partition that is new is left alone for a while: its load of the first minutes says little of the next."""

from __future__ import annotations

import numpy as np

from tests.unit.trimtab.service.beside import GOALS, Service, World, simulated_executor
from trimtab.service.newcomers import Newcomers
from trimtab.simulator.spec import MB, TopicPartition, TopicSpec

YOUNG = GOALS + "policy: {partition_min_age: 10m}\n"


def with_a_new_topic(world: World, goals: str) -> tuple[Service, tuple[TopicPartition, ...]]:
    """A level cluster to which a topic comes, all of it on two brokers."""
    many = 12
    world.cluster.alter_partition_reassignments(
        {TopicPartition("orders", n): ((1, 2), (2, 3), (3, 1))[n % 3] for n in range(many)}
    )
    world.pass_time(30)
    service = Service(world, goals=goals, mode="auto", executor=simulated_executor(world))
    service.run(60)
    lists = tuple((1, 2) if n % 2 else (2, 1) for n in range(many))
    world.cluster.create_topic(TopicSpec("clicks", lists, np.full(many, MB), 1.0, np.full(many, 5 * MB), filled=1.0))
    return service, tuple(TopicPartition("clicks", n) for n in range(many))


def test_new_partitions_are_left_alone_until_they_are_old_enough(world: World) -> None:
    service, names = with_a_new_topic(world, YOUNG)
    before = [world.cluster.replicas(n) for n in names]
    service.run(300)
    assert [world.cluster.replicas(n) for n in names] == before
    service.run(450)
    assert [world.cluster.replicas(n) for n in names] != before
    service.stop()


def test_without_the_policy_they_are_moved_as_any_other(world: World) -> None:
    service, names = with_a_new_topic(world, GOALS)
    before = [world.cluster.replicas(n) for n in names]
    service.run(300)
    assert [world.cluster.replicas(n) for n in names] != before
    service.stop()


def test_a_topic_that_is_made_again_under_its_name_is_new(world: World) -> None:
    newcomers, (_, follower) = Newcomers(), world.follow()
    follower.poll(0)
    newcomers.look(follower.image, 0)
    assert newcomers.younger_than(1_000, 0) == (), "what was there is of unknown age"
    world.cluster.delete_topic("orders")
    world.cluster.create_topic(TopicSpec("orders", ((1, 2), (2, 1)), np.full(2, MB), 1.0, np.full(2, MB)))
    world.cluster.step(5)
    follower.poll(5_000)
    newcomers.look(follower.image, 5_000)
    assert newcomers.younger_than(1_000, 5_500) == (("orders", 0), ("orders", 1))
    assert newcomers.younger_than(1_000, 6_000) == ()
