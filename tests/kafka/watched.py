"""A command of Trimtab as an operator runs it, whose stderr is watched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds that a busy machine may need for what takes one


class Watched:
    """A process in `folder`, with what it starts in a group of its own; `said` are the lines of its stderr so far."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "trimtab", *arguments],
            cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.said: list[str] = []
        self._news = threading.Condition()
        assert self._popen.stderr is not None
        self._ear = threading.Thread(target=self._listen, args=(self._popen.stderr,), daemon=True)
        self._ear.start()

    def _listen(self, stream: IO[str]) -> None:
        for line in stream:
            with self._news:
                self.said.append(line.rstrip())
                self._news.notify_all()

    def hears(self, text: str, seconds: float = PATIENCE, times: int = 1) -> bool:
        """Whether so many lines with a text came in time."""
        with self._news:
            return self._news.wait_for(lambda: sum(text in line for line in self.said) >= times, seconds)

    def send(self, sent: signal.Signals) -> None:
        self._popen.send_signal(sent)

    def end(self, sent: signal.Signals) -> int:
        self.send(sent)
        return self.ends(PATIENCE)

    def ends(self, seconds: float) -> int:
        """Its exit code; it ends by itself."""
        code = self._popen.wait(seconds)
        self._ear.join(5)
        return code

    def done(self) -> None:
        """End it where it has not ended."""
        if self._popen.poll() is None:
            self.kill()

    def kill(self) -> None:
        """With everything it started."""
        os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait(30)
