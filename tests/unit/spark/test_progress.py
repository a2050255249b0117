"""How far a job is, for a bar."""

from __future__ import annotations

from spark.progress import far, followed


def test_the_end_is_told_however_short_the_job_was() -> None:
    """Else a bar of a fast step stands at nothing."""
    done, heard = [0], []
    with followed(lambda: (done[0], 7), lambda so_far, total: heard.append((so_far, total))):
        done[0] = 7
    assert heard[-1] == (7, 7)


def test_nothing_is_asked_where_there_is_no_terminal() -> None:
    asked: list[int] = []

    def ask() -> None:
        asked.append(1)

    with followed(ask, None):
        pass
    assert asked == []


def test_a_run_has_one_bar_that_does_not_end_before_it() -> None:
    """A bar for each of its stages goes from nothing to all a dozen times, and says nothing of the whole."""
    assert far(0, 0.0, 13) == (0, 1300)
    assert far(6, 0.5, 13) == (650, 1300)
    assert far(13, 0.0, 13) == (1300, 1400)
    assert far(12, 1.0, 13) == (1299, 1300)
