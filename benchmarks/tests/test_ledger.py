"""The ledger decides whether the planner may change: it must notice every way to get worse, and never count a cell twice."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.ledger import SEEDS, SIZES, Line, broken, main, read, rows_like

GOOD = Line(
    row="100x50k/b/even/score", seed=SEEDS[0], replicas=50_000, in_band=98, proven=1, unproven=1, hard=0, moves=1_000, moves_bound=990,
    bytes=10**12, bytes_bound=10**12, leadership_changes=100, cpu_s=0.2, peak_mb=200.0, repeated=True, commit="1234567",
)  # fmt: skip
OTHERS = [replace(GOOD, seed=seed) for seed in SEEDS[1:]]
ROWS = "20x400/a/even/score,20x400/c/even"


def written(file: Path, *lines: Line) -> str:
    file.write_text("".join(json.dumps(asdict(line)) + "\n" for line in lines))
    return str(file)


def test_there_are_50_seeds_and_the_rows_without_large_ones() -> None:
    assert len(set(SEEDS)) == 50
    assert {row.split("/")[0] for row in rows_like([])} == set(SIZES)
    assert rows_like(["20x400/b/racks", "*/b/racks/score"])[:2] == ["20x400/b/racks/score", "20x400/b/racks/potential"]


@pytest.mark.parametrize(
    ("worse", "word"),
    [
        ({"in_band": 97}, "in band"),
        ({"unproven": 2}, "without a proof"),
        ({"hard": 1}, "hard"),
        ({"moves": 1_031}, "moves: 1.0310 in the worst"),
        ({"bytes": 10**12 * 104 // 100}, "bytes: 1.0400 in the worst"),
        ({"cpu_s": 0.21}, "CPU of 100x50k"),
        ({"repeated": False}, "second run"),
    ],
    ids=str,
)
def test_one_worse_cell_breaks_one_limit(worse: dict[str, object], word: str) -> None:
    found = broken([(GOOD, replace(GOOD, **worse)), *zip(OTHERS, OTHERS, strict=True)])  # type: ignore[arg-type]
    assert len(found) == 1
    assert word in found[0]


def test_every_cell_a_little_worse_breaks_the_mean() -> None:
    found = broken([(line, replace(line, moves=1_011)) for line in OTHERS])
    assert found == ["moves: 1.0110 in the geometric mean, at most 1.01"]


def test_moves_where_there_were_none_break_the_worst_cell() -> None:
    still = replace(GOOD, moves=0, bytes=0)
    assert len(broken([(still, GOOD)])) == 2
    assert broken([(still, still), (GOOD, still)]) == []


def test_time_of_small_clusters_and_memory_break_nothing() -> None:
    small = replace(GOOD, row="100x10k/b/even/score", replicas=10_000)
    assert broken([(small, replace(small, cpu_s=9.0, peak_mb=900.0))]) == []


def test_compare_prints_the_worst_cell_and_its_exit_code_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = written(tmp_path / "before", GOOD, *OTHERS[:3])
    assert main(["compare", before, before]) == 0
    after = written(tmp_path / "after", replace(GOOD, moves=1_100, in_band=97, unproven=2))
    capsys.readouterr()
    assert main(["compare", before, after]) == 1
    said = capsys.readouterr().out
    assert "1 cells in both; 3 only before" in said
    assert f"{GOOD.row} {GOOD.seed}: 1,000 → 1,100; in band 98 → 97, unproven 1 → 2" in said
    assert said.count("BROKEN") == 4


def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    out = tmp_path / "ledger"
    run = ["run", "--out", str(out), "--rows", ROWS, "--seeds", "1"]
    assert main(run) == 0
    first, second, third = read(out)
    assert [line.row for line in (first, second, third)] == rows_like(ROWS.split(","))
    assert first.moves >= first.moves_bound > 0
    assert first.in_band + first.proven + first.unproven == 20
    assert second.in_band + second.proven + second.unproven == 19  # one is draining
    out.write_text(out.read_text()[:-9])
    assert main(run) == 0
    again = list(read(out))
    assert again[:2] == [first, second]
    assert replace(again[2], cpu_s=third.cpu_s, peak_mb=third.peak_mb) == third


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--out", "FILE", "--rows", "20x400/z"], "'20x400/z' fits no row"),
        (["run", "--out", "FILE", "--rows", "20x400/a/even"], "cells of commit 1234567"),
        (["compare", "NONE", "FILE"], "No such file"),
        (["compare", "BAD", "FILE"], "BAD line 1: expected a JSON object"),
        (["compare", "FILE", "OTHER"], "no cell in common"),
    ],
    ids=str,
)
def test_wrong_use_says_what_to_do(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("FILE"), GOOD)
    written(Path("OTHER"), OTHERS[0])
    Path("BAD").write_text('{"row": 1}\n')
    with pytest.raises(SystemExit, match=message):
        main(arguments)
