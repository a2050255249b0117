"""Bad days in a short form: `python -m tests.kafka.unrest` has the long one. Each ends with what the service says being true."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kafka.cluster import KafkaCluster
from tests.kafka.days import Scene, idle_connections, reporter_silent, restarted, steady, topic_deleted


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Four brokers under traffic that leans on one of them, and one controller with a service in the mode `auto`."""
    with KafkaCluster(controllers=1) as kafka, Scene(kafka, tmp_path_factory.mktemp("days")) as scene:
        assert scene.ready(), scene.logs()
        yield scene


def one_restarted(scene: Scene) -> list[str]:
    return restarted(scene, [4])


@pytest.mark.parametrize("day", [steady, idle_connections, reporter_silent, topic_deleted, one_restarted])
def test_a_bad_day_ends_with_the_truth(scene: Scene, day: Callable[[Scene], list[str]]) -> None:
    wrong = day(scene)
    assert not wrong, "\n".join([*wrong, scene.logs()])
    left = scene.settled()
    assert not left, "\n".join([*left, scene.logs()])
