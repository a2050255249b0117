"""The service takes new goals when the goals file or its calibration changes, and keeps the old ones where the new are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from goals.document import parse_goals
from goals.model import UsageDistribution
from trimtab.service.goals import GoalsKeeper, goals_text

CALIBRATION = """version: 1
cluster_id: test
made_at: 2026-11-02T00:00:00Z
history: {begin: 2026-10-01T00:00:00Z, end: 2026-11-01T00:00:00Z, window: 300, samples: 1, brokers: 1, partitions: 1, digest: x}
resources: {network_in: {mean: 1, noise: 0.03, bound: 0.14, var: 0.56, min_load: 0}}
"""
JUST_AFTER = 1_793_620_800_000  # the day after the last of the history
GOALS = "version: 1\ngoals: [{kind: usage_distribution, resource: network_in}]\n"


class Kept:
    def __init__(self, folder: Path) -> None:
        self.goals, self.calibration = folder / "goals.yaml", folder / "c.yaml"
        self.goals.write_text(GOALS + "calibration: c.yaml\n")
        self.calibration.write_text(CALIBRATION)
        self.told: list[str] = []
        self.now_ms = JUST_AFTER
        self.keeper = GoalsKeeper(self.goals, None, self.told.append, lambda: self.now_ms)

    def settle(self) -> float:
        """Turns until the file is seen unchanged twice; the bound in force then."""
        for _ in range(3):
            self.keeper.turn()
        goal = self.keeper.current.goals[0]
        assert isinstance(goal, UsageDistribution)
        return goal.bound


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_a_new_calibration_comes_into_force(kept: Kept) -> None:
    assert kept.settle() == 0.14
    assert kept.told == []
    kept.calibration.write_text(CALIBRATION.replace("0.14", "0.171"))
    assert kept.settle() == 0.171
    assert kept.told == ["goals reloaded"]


def test_a_calibration_with_a_mistake_leaves_the_old_goals_in_force(kept: Kept) -> None:
    kept.calibration.write_text(CALIBRATION.replace("noise", "niose"))
    assert kept.settle() == 0.14
    assert kept.keeper.error is not None
    assert "c.yaml: resources.network_in.niose: unknown key; did you mean 'noise'?" in kept.keeper.error
    kept.calibration.unlink()
    assert kept.settle() == 0.14
    assert "found none at" in kept.keeper.error
    kept.calibration.write_text(CALIBRATION.replace("0.14", "0.2"))
    assert kept.settle() == 0.2
    assert kept.keeper.error is None


def test_a_calibration_that_the_goals_name_later_is_watched_too(kept: Kept) -> None:
    kept.goals.write_text(GOALS + "calibration: later.yaml\n")
    assert kept.settle() == 0.14
    later = kept.goals.with_name("later.yaml")
    later.write_text(CALIBRATION.replace("0.14", "0.31"))
    assert kept.settle() == 0.31
    later.write_text(CALIBRATION.replace("0.14", "0.322"))
    assert kept.settle() == 0.322


def test_goals_in_force_are_shown_with_what_the_calibration_gave(kept: Kept) -> None:
    text = goals_text(kept.keeper.current)
    assert "# from c.yaml (2026-10-01 to 2026-11-01): usage_distribution-network_in bound 0.14, var 0.56, min_load 0 B\n" in text
    assert parse_goals(text, "shown").digest == kept.keeper.current.digest


def test_a_calibration_that_is_old_is_told_once_a_day(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    """Its bounds are of traffic that may be gone; nothing else would ever say so."""
    day = 86_400_000

    def stale() -> str | None:
        kept.settle()
        return kept.keeper.stale

    assert stale() is None
    kept.now_ms += 30 * day
    told = "The calibration c.yaml is old: its history ended 31 days ago, on 2026-11-01. Run trimtab calibrate again."
    assert stale() == told
    assert caplog.messages.count(told) == 1
    kept.now_ms += day
    assert stale() is not None
    assert sum("is old" in message for message in caplog.messages) == 2
    kept.calibration.write_text(CALIBRATION.replace("end: 2026-11-01", "end: 2026-11-30"))
    assert stale() is None
