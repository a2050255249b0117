"""What is told on stderr: sentences, with their time where a command runs for days."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from trimtab.story import Story, log, tell, tell_when


@pytest.fixture(autouse=True)
def untold() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


def test_sentences_of_a_command_that_runs_for_days_have_their_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    tell(Story())
    log.warning("before")
    tell_when()
    log.warning("after")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "warning: before"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ warning: after", second)


def test_the_journal_notes_the_time_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    tell(Story())
    tell_when()
    log.warning("lost a broker")
    assert capsys.readouterr().err == "warning: lost a broker\n"
