"""The whole command on a history on disk, in a process of its own: from samples to the calibration file that `tune` reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from goals.calibration import Calibration, HistorySpan, ResourceCalibration, calibration_text, load_calibration
from tests.histories.synthetic import Truth, write


def test_a_history_becomes_weights_and_a_table_in_the_calibration(
    tmp_path: Path, command_line: Callable[..., CompletedProcess[str]]
) -> None:
    write(
        Truth(brokers=4, partitions=12, interval=3600, span=2 * 86_400, imbalance=0.4, seed=3),
        tmp_path / "history",
    )
    before = Calibration(
        version=1, cluster_id="c", made_at="2026-11-20T00:00:00Z",
        history=HistorySpan(begin="b", end="e", window=300.0, samples=1, brokers=4, partitions=12, digest="sha256:0"),
        resources={"network_in": ResourceCalibration(mean=1.0, noise=0.1, bound=0.3, var=1.0, min_load=None)},
    )  # fmt: skip
    given, out, report = tmp_path / "given.yaml", tmp_path / "out.yaml", tmp_path / "report.html"
    given.write_text(calibration_text(before))
    words = [
        "backtest", "--history", tmp_path / "history", "--preset", "automq", "--calibration", given, "--out", out, "--report", report,
        "--window", "1h", "--horizon", "1h,6h", "--stretch", "1d", "--cadence", "6h", "--search", "grid", "--trials", "3",
        "--master", "local[1]",
    ]  # fmt: skip
    ended = command_line(*map(str, words))
    assert ended.returncode == 0, ended.stderr
    after = load_calibration(out)
    assert after.resources == before.resources
    assert len(after.backtest) >= 2
    assert sum(row.chosen for row in after.backtest) == 1
    assert after.backtest[0].bounds == {
        "usage_distribution-network_in": 0.1,
        "usage_distribution-network_out": 0.1,
    }
    assert bool(after.weights) == (not after.backtest[0].chosen)
    assert "broker-hours out" in ended.stdout
    assert ended.stdout.index("The choice is confirmed if") < ended.stdout.index("On the held-out part")
    assert ended.stderr.index("held out for the test") < ended.stderr.index("replaying")
    assert "± is the standard error" in ended.stdout
    assert all(row.out_of_band_error is not None for row in after.backtest[1:])
    assert "of them count" in ended.stderr
    assert "capacities: none known" in ended.stderr
    assert {row.horizon for row in after.backtest} <= {3600.0, 6 * 3600.0}
    assert after.backtest[0].horizon == 3600.0
    page = report.read_text()
    assert "Brokers outside their target range on the held-out part" in page
    assert "The choice is confirmed if" in page
    assert "brokers outside their target range over time" in page  # the drawing: there are figures for it
    assert "on 1 stretch of history, 4 times" in ended.stderr  # no terminal: lines, and no bar
    assert "Replays" not in ended.stderr
