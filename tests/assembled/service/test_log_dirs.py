"""Log directories on the page: a volume that fills up while the broker has room, and one that is offline, are seen before replicas are
lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.errors import ExternalError
from tests.assembled.service.beside import GOALS, Service, World
from trimtab.capture.reading import BrokerReading, LogDir, LogSizes
from trimtab.http.glance import glance
from trimtab.service.log_dirs import EVERY, TURN, LogDirs

TB = 10**12


def told(*used: float, offline: tuple[str, ...] = ()) -> BrokerReading:
    """Volumes of 1 TB of which so much is in use, shares."""
    dirs = tuple(LogDir(f"/data{n}", TB, round((1 - share) * TB)) for n, share in enumerate(used))
    return BrokerReading(LogSizes(0.0, {}, offline, 0, dirs))


def test_the_fullest_volume_and_offline_directories_are_known_of_brokers_that_have_any() -> None:
    answers = {1: told(0.9, 0.2, 0.4), 2: told(0.99), 3: told(0.3, offline=("/data9",)), 4: told(offline=("/data0",))}
    news: list[int] = []
    dirs = LogDirs(lambda brokers: {b: answers[b] for b in brokers}, lambda: answers, lambda: news.append(1))
    assert dirs.turn() == EVERY
    assert [(v.broker, v.volumes, v.fullest, v.offline) for v in dirs.known] == [
        (1, 3, "/data0", ()), (3, 1, "/data0", ("/data9",)), (4, 0, None, ("/data0",)),
    ]  # fmt: skip
    assert (dirs.known[0].fullest_used, dirs.known[0].used) == pytest.approx((0.9, 0.5))
    dirs.turn()
    assert news == [1]


def test_a_broker_that_does_not_tell_is_as_it_was_and_that_is_said() -> None:
    answers = {1: told(0.9, 0.2), 2: told(0.9, 0.2)}
    dirs = LogDirs(lambda brokers: {b: answers[b] for b in brokers}, lambda: answers, lambda: None)
    dirs.turn()
    answers |= {1: BrokerReading(answered=False, errors=("log directories: KafkaTimeoutError",)), 2: told(0.5, 0.2)}
    with pytest.raises(ExternalError, match="1 of 2 brokers: broker 1: log directories: KafkaTimeoutError"):
        dirs.turn()
    assert [v.fullest_used for v in dirs.known] == pytest.approx([0.9, 0.5])
    assert LogDirs(lambda brokers: {}, tuple, lambda: None).turn() == TURN


def test_the_page_names_them(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.dirs = {1: told(0.9, 0.2), 2: told(0.3, 0.2), 3: told(0.3, 0.2, offline=("/data7",))}
    service = Service(world, goals=GOALS)
    seen = glance(service.run(40))
    assert seen.facts == (
        "Broker 1: log directory /data0 is 90% full, its 2 log directories together 55%; `trimtab directories` moves replicas between "
        "them.",
        "Broker 3 has offline log directories: /data7.",
    )
    service.stop()
