"""One wish to end is one, however many signals carry it; who insists is heard."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.assembled.commands.command_line import finished, process, snapshot_file
from trimtab.signals import SAME_REQUEST, Told, signals_heard


def test_signals_of_one_moment_are_one_wish_and_a_later_one_insists() -> None:
    """A second signal that came with the first would leave an execution under way, and samples unwritten."""
    now = 100.0
    told = Told(lambda: now)
    assert not told.ends_at_once()
    assert told.stop.is_set()
    now += SAME_REQUEST / 2
    assert not told.ends_at_once()
    now += SAME_REQUEST
    assert told.ends_at_once()


def test_handlers_are_as_before_where_no_signal_came() -> None:
    caught = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(s) for s in caught]
    with signals_heard(hangup=True) as told:
        signal.raise_signal(signal.SIGHUP)
        assert not told.stop.is_set()
    assert [signal.getsignal(s) for s in caught] == before


def test_a_reporter_that_is_told_to_end_while_it_still_loads_ends_cleanly(tmp_path: Path) -> None:
    path = tmp_path / "reporter.yaml"
    path.write_text("version: 1\nbroker: 1\nkafka: {bootstrap_servers: '127.0.0.1:1'}\ncollectors: {host: }\n")
    before = (
        "import signal\nclass Early:\n    def find_spec(self, name, path, target=None):\n"
        "        if name == 'trimtab.reporter': signal.raise_signal(signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Early())"
    )
    ended = finished(process("reporter", "--config", path, before=before))
    assert ended.code == 0, ended.err
    assert "stopped: 0 records sent" in ended.err


HEARD_WHILE_WRITING = """
import io, os, signal, sys
class Raw(io.RawIOBase):
    told = False
    def writable(self): return True
    def write(self, line):
        written = os.write(2, line)
        if b"using preset" in bytes(line) and not self.told:
            self.told = True
            signal.raise_signal(signal.SIGINT)
        return written
sys.stderr = io.TextIOWrapper(io.BufferedWriter(Raw()), line_buffering=True)
"""


def test_ctrl_c_while_a_line_is_written_ends_a_plan_all_the_same(tmp_path: Path) -> None:
    """A stream that is being written takes no other line. So the word that it was interrupted failed, the logging that was writing took
    that for a failure of its own line, and the plan went on to its end, with every further signal ignored."""
    plan = tmp_path / "plan.json"
    ended = finished(process("plan", "--snapshot", snapshot_file(tmp_path), "--out", plan, before=HEARD_WHILE_WRITING))
    assert ended.code == 130, ended.err
    assert "interrupted" in ended.err
    assert not plan.exists()
