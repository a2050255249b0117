from __future__ import annotations

import pytest

from benchmarks.tight_limits import main, missed


def test_further_restarts_meet_more_limits() -> None:
    seeds = range(20, 30)
    assert not missed(seeds, (3, 6), (2, 8))
    assert missed(seeds, (3, 6), (2, 8), restarts=1)


def test_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "2", "--brokers", "3,4"]) == 0
    assert "0 of 2 plans leave a hard limit broken" in capsys.readouterr().out


def test_a_range_needs_two_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--brokers", "3"])
    assert "expected two numbers, as in 4,30, found '3'" in capsys.readouterr().err
