"""Nothing that fails in any of the runs is lost, nor what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parallel import INTERRUPTED, main

GOOD, BAD = "def test_it() -> None:\n    pass\n", "def test_it() -> None:\n    raise AssertionError('what went wrong')\n"
NAMES = ("kafka", "rest", "spark")


@pytest.fixture(autouse=True)
def _light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without pytest's plugins, which take most of the time to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def ended(folder: Path, texts: tuple[str, ...], *more: str, at_once: int = 2) -> int:
    """The exit code of one run for each of these files, `at_once` in parallel."""
    runs = []
    for name, text in zip(NAMES, texts, strict=True):
        (folder / f"test_{name}.py").write_text(text)
        runs.append([str(folder / f"test_{name}.py"), f"--rootdir={folder}", "-q", *more])
    return main(runs, at_once)


def opens(file: Path, how: str) -> str:
    """A test that ends once another test opens the same pipe in the other way."""
    return f"def test_it() -> None:\n    open({str(file)!r}, {how!r}).close()\n"


@pytest.mark.parametrize("texts", [(GOOD, GOOD, GOOD), (BAD, GOOD, GOOD), (GOOD, BAD, GOOD), (GOOD, GOOD, BAD)])
def test_all_runs_have_to_pass(texts: tuple[str, str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = 1 if BAD in texts else 0
    assert ended(tmp_path, texts) == code
    said = capfd.readouterr().out
    assert said.count("1 passed") == texts.count(GOOD)
    assert ("AssertionError: what went wrong" in said) == (code != 0)


def test_a_run_of_which_nothing_is_chosen_is_no_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert ended(tmp_path, (GOOD, GOOD, GOOD.replace("test_it", "test_other")), "-k", "test_other") == 0
    assert "1 deselected" in capfd.readouterr().out


@pytest.mark.parametrize("longer", [0, 1])
def test_what_follows_does_not_wait_for_the_longest_run(longer: int, tmp_path: Path) -> None:
    """Spark's tests waited for those that compute, while nothing ran beside these for ten minutes."""
    os.mkfifo(tmp_path / "done")
    texts = [GOOD, GOOD, opens(tmp_path / "done", "w")]
    texts[longer] = opens(tmp_path / "done", "r")
    assert ended(tmp_path, tuple(texts)) == 0


def test_as_many_run_in_parallel_as_are_asked_for(tmp_path: Path) -> None:
    """The first waits for the third, and the second for the first: two in parallel would wait for ever."""
    os.mkfifo(tmp_path / "third")
    os.mkfifo(tmp_path / "second")
    both = f"{opens(tmp_path / 'third', 'r')}    open({str(tmp_path / 'second')!r}).close()\n"
    assert ended(tmp_path, (both, opens(tmp_path / "second", "w"), opens(tmp_path / "third", "w")), at_once=3) == 0


def test_ctrl_c_ends_all_runs_and_starts_no_other(tmp_path: Path) -> None:
    for name in NAMES:
        os.mkfifo(tmp_path / name)  # opened by both sides once the test runs
        (tmp_path / f"test_{name}.py").write_text(
            "import threading\n\ndef test_it() -> None:\n"
            f"    open({str(tmp_path / name)!r}, 'w').close()\n    threading.Event().wait()\n"
        )
    runs = [[str(tmp_path / f"test_{name}.py"), f"--rootdir={tmp_path}", "-q"] for name in NAMES]
    program = f"from tests.parallel import main; import sys; sys.exit(main({runs!r}, 2))"
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as running:
        for name in NAMES[:2]:
            (tmp_path / name).open().close()
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait() == 2  # with the third run, it would wait for the other end to be opened


def test_an_interrupt_of_the_runner_alone_is_no_success(tmp_path: Path) -> None:
    """The runs that had started passed, the third never started, and the exit code was 0."""
    runs, started, end = [], {}, {}
    for name in NAMES:
        started[name], end[name] = tmp_path / f"{name}-started", tmp_path / f"{name}-end"
        os.mkfifo(started[name])
        os.mkfifo(end[name])
        (tmp_path / f"test_{name}.py").write_text(f"{opens(started[name], 'w')}    open({str(end[name])!r}).close()\n")
        runs.append([str(tmp_path / f"test_{name}.py"), f"--rootdir={tmp_path}", "-q"])
    with subprocess.Popen([sys.executable, "-c", f"from tests.parallel import main; import sys; sys.exit(main({runs!r}, 2))"]) as running:
        for name in NAMES[:2]:
            started[name].open().close()
        running.send_signal(signal.SIGINT)
        for name in NAMES[:2]:
            end[name].open("w").close()
        assert running.wait() == INTERRUPTED
