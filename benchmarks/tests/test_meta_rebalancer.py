"""The row beside Meta's Rebalancer: the same instance for both, counted the same way, and left out with a note where it cannot run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.meta_rebalancer import LIMIT, RESOURCES, instance, judged, main, ours, theirs


def test_instance_has_no_use_for_leadership() -> None:
    snapshot = instance(10, 900, 0, 0.3)
    for resource in RESOURCES:
        leading, following = snapshot.vectors(resource)
        assert np.array_equal(leading, following)
        assert np.allclose(snapshot.capacity[resource], snapshot.broker_load(resource).mean())


def test_both_are_counted_alike() -> None:
    snapshot = instance(10, 900, 0, 0.3)
    placed = snapshot.replicas.copy()
    placed[0] = placed[0][::-1]  # the same brokers: nothing moves
    same_rack = [b for b in range(10) if snapshot.racks[b] == snapshot.racks[placed[1, 1]] and b != placed[1, 1]]
    placed[1, 0] = same_rack[0]
    side = judged("somebody", (1.0, 2.0), snapshot, snapshot.with_placement(placed, placed[:, 0].copy()))
    assert side.moves == 1
    assert side.terabytes == pytest.approx(snapshot.leader_load["disk"][1] / 1e12, abs=1e-3)
    assert side.racks_broken == 1
    before = judged("nobody", (0.0, 0.0), snapshot, snapshot)
    high = sum(int((snapshot.broker_load(x) > LIMIT * snapshot.capacity[x]).sum()) for x in RESOURCES)
    assert (before.moves, before.over) == (0, high)
    assert high > 0


@pytest.mark.parametrize("price", ["bytes", "moves"])
@pytest.mark.parametrize("form", ["limits", "bands"])
def test_our_plan_meets_the_limits(form: str, price: str) -> None:
    side, _ = ours((instance(10, 900, 0, 0.3), form, price, "potential"))
    assert (side.over, side.racks_broken) == (0, 0)
    assert side.moves > 0


@pytest.mark.parametrize("spread", [0.1, 0.2, 0.3])
def test_where_moves_count_the_plan_is_near_the_floor(spread: float) -> None:
    side, (needed, _) = ours((instance(100, 30_000, 0, spread), "limits", "moves", "potential"))
    assert side.over == 0
    assert needed <= side.moves <= 1.05 * needed


def test_an_interpreter_without_it_is_named() -> None:
    with pytest.raises(SystemExit, match="expected a CPython with `rebalancer`"):
        theirs(Path(sys.executable), instance(10, 900, 0, 0.3), "fast", 10)


def test_without_an_interpreter_the_row_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--brokers", "10", "--replicas", "900", "--acceptance", "potential"])
    printed = capsys.readouterr().out
    assert "Rebalancer left out" in printed
    assert "Trimtab, bands, moves, potential" in printed
