"""The arena measures what it says."""

from __future__ import annotations

import sys

import pytest

from benchmarks.arena import COPIED, LOSS_AT, STEP, a_day, main, scenario


@pytest.mark.parametrize("given", [["--scenarios", "nosuch"], ["--policies", "default,nosuch"]])
def test_an_unknown_name_is_refused(given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["arena", *given])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, "found 'nosuch'" in capsys.readouterr().err) == (2, True)


def test_a_lost_broker_is_being_emptied_within_what_may_be_copied() -> None:
    hours = LOSS_AT + 2 * STEP
    score = a_day("danube-balanced", "loss", 7, hours)
    snapshot, _ = scenario("loss", 7)
    data = float((snapshot.vectors("disk")[0] * snapshot.replication_factor).sum())
    largest = float(snapshot.vectors("disk")[0].max())
    assert score.moves > 0
    assert 0 < score.bytes <= hours / STEP * max(COPIED * data, largest)
    assert score.outside > 0
    assert score.returns <= score.moves


def test_the_same_hours_give_the_same_figures() -> None:
    assert a_day("danube-balanced", "drift", 7, 1.0) == a_day("danube-balanced", "drift", 7, 1.0)
