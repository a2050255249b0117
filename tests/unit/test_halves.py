"""Nothing that fails in either half of the tests is lost, nor what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.halves import main

GOOD, BAD = "def test_it() -> None:\n    pass\n", "def test_it() -> None:\n    raise AssertionError('what went wrong')\n"


def ended(folder: Path, waiting: str, others: str, *more: str) -> int:
    """The exit code of a run of these two files."""
    files = []
    for name, text in (("test_waiting.py", waiting), ("test_others.py", others)):
        (folder / name).write_text(text)
        files.append([str(folder / name), f"--rootdir={folder}", "-q", *more])
    return main(*files)


@pytest.mark.parametrize(("waiting", "others", "code"), [(GOOD, GOOD, 0), (BAD, GOOD, 1), (GOOD, BAD, 1)])
def test_both_halves_have_to_pass(waiting: str, others: str, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(tmp_path, waiting, others) == code
    said = capfd.readouterr().out
    assert said.count("1 passed") == (waiting, others).count(GOOD)
    assert ("AssertionError: what went wrong" in said) == (code != 0)


def test_a_half_of_which_nothing_is_chosen_is_no_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(tmp_path, GOOD, GOOD.replace("test_it", "test_other"), "-k", "test_other") == 0
    assert "1 deselected" in capfd.readouterr().out
