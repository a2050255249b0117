"""The bar on stderr: only for who watches, and nothing is lost for who does not."""

from __future__ import annotations

import logging

import pytest

from trimtab.bar import bar
from trimtab.story import Story


def test_without_a_terminal_sentences_are_log_lines_and_progress_is_not_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "trimtab"), bar(Story(quiet=True), "Replays", "done") as (tell, move):
        tell("replaying [2] configurations")
        assert move is None
    assert [record.getMessage() for record in caplog.records] == ["replaying [2] configurations"]


def test_who_watches_sees_what_is_done_of_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    class Watched(Story):
        @property
        def animated(self) -> bool:
            return True

    with bar(Watched(), "Replays", "done") as (tell, move):
        assert move is not None
        tell("replaying [2] configurations")
        move(3, 12)
    shown = capsys.readouterr()
    assert "replaying [2] configurations" in shown.err
    assert shown.out == ""
