"""Nothing that fails in either half of the tests is lost, nor what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.halves import main

GOOD, BAD = "def test_it() -> None:\n    pass\n", "def test_it() -> None:\n    raise AssertionError('what went wrong')\n"


@pytest.fixture(autouse=True)
def _light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without pytest's plugins, which take most of the time to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def ended(folder: Path, waiting: str, computing: str, spark: str, *more: str) -> int:
    """The exit code of a run of these files, the first two side by side, the third after the one that ends first."""
    files = []
    for name, text in (("test_waiting.py", waiting), ("test_computing.py", computing), ("test_spark.py", spark)):
        (folder / name).write_text(text)
        files.append([str(folder / name), f"--rootdir={folder}", "-q", *more])
    return main(files[0], files[1:])


@pytest.mark.parametrize("texts", [(GOOD, GOOD, GOOD), (BAD, GOOD, GOOD), (GOOD, BAD, GOOD), (GOOD, GOOD, BAD)])
def test_both_halves_have_to_pass(texts: tuple[str, str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = 1 if BAD in texts else 0
    assert ended(tmp_path, *texts) == code
    said = capfd.readouterr().out
    assert said.count("1 passed") == texts.count(GOOD)
    assert ("AssertionError: what went wrong" in said) == (code != 0)


def test_a_half_of_which_nothing_is_chosen_is_no_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(tmp_path, GOOD, GOOD, GOOD.replace("test_it", "test_other"), "-k", "test_other") == 0
    assert "1 deselected" in capfd.readouterr().out


@pytest.mark.parametrize("longer", ["waiting", "computing"])
def test_what_follows_does_not_wait_for_the_longer_half(longer: str, tmp_path: Path) -> None:
    """Spark's tests waited for those that compute, while nothing ran in the other half for ten minutes."""
    os.mkfifo(tmp_path / "done")  # opened by both sides, or neither
    texts = dict.fromkeys(("waiting", "computing"), GOOD)
    texts[longer] = f"def test_it() -> None:\n    open({str(tmp_path / 'done')!r}).close()\n"
    assert ended(tmp_path, *texts.values(), f"def test_it() -> None:\n    open({str(tmp_path / 'done')!r}, 'w').close()\n") == 0


def test_ctrl_c_ends_both_halves_and_starts_no_other_run(tmp_path: Path) -> None:
    names = ("waiting", "computing", "spark")
    for name in names:
        os.mkfifo(tmp_path / name)  # opened by both sides once the test runs
        (tmp_path / f"test_{name}.py").write_text(
            "import threading\n\ndef test_it() -> None:\n"
            f"    open({str(tmp_path / name)!r}, 'w').close()\n    threading.Event().wait()\n"
        )
    runs = [[str(tmp_path / f"test_{name}.py"), f"--rootdir={tmp_path}", "-q"] for name in names]
    program = f"from tests.halves import main; import sys; sys.exit(main({runs[0]!r}, {runs[1:]!r}))"
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as running:
        for name in names[:2]:
            (tmp_path / name).open().close()
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait() == 2  # with the third run, it would wait for the other end to be opened
