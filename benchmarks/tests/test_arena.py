"""The arena measures what it says."""

from __future__ import annotations

from benchmarks.arena import SCENARIOS, a_day, scenario


def test_a_lost_broker_is_emptied_and_what_it_took_is_counted() -> None:
    score = a_day("wix-minimal", "loss", 4.0)
    snapshot, _ = scenario("loss")
    assert score.moves >= int((snapshot.replicas == 3).sum())
    assert score.bytes > 0
    assert score.outside > 0


def test_the_same_day_gives_the_same_figures() -> None:
    for name in SCENARIOS:
        one, two = a_day("danube-balanced", name, 1.0), a_day("danube-balanced", name, 1.0)
        assert one == two
