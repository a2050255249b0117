"""What Trimtab tells a person while it works: lines on stderr, as text or as JSON, one object a line.

Any module may log through `logging.getLogger(__name__)`; the command line decides where that goes. Data never
comes this way (`trimtab.output`).
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal, TextIO

from cluster_model.plain_text import lines

LogFormat = Literal["text", "json"]
LOG_FORMAT = "TRIMTAB_LOG_FORMAT"  # the variable that stands for --log-format
LOG_FORMATS: tuple[LogFormat, ...] = ("text", "json")
ROOMS = ("cluster_model", "goals", "optimizer", "metrics_reporter", "spark", "trimtab")

log = logging.getLogger("trimtab")


@dataclass(slots=True)
class Story:
    """How much is told and in which form.

    `quiet` leaves warnings and errors, `verbose` adds details and tracebacks.
    """

    quiet: bool = False
    verbose: bool = False
    log_format: LogFormat = "text"

    @property
    def level(self) -> int:
        if self.verbose:
            return logging.DEBUG
        return logging.WARNING if self.quiet else logging.INFO

    @property
    def animated(self) -> bool:
        """Whether progress bars may be drawn: a person looks on and asked for neither silence nor JSON."""
        return sys.stderr is not None and sys.stderr.isatty() and not self.quiet and self.log_format == "text"


def asked_for(arguments: Sequence[str]) -> Story:
    """The story in the form that a command line asks for, before it is parsed: a wrong one is told in that form, too."""
    text = "--log-format=text" in arguments or ("--log-format", "text") in pairwise(arguments)
    asked_json = "--log-format=json" in arguments or ("--log-format", "json") in pairwise(arguments)
    asked_json |= os.environ.get(LOG_FORMAT) == "json" and not text
    return Story(log_format="json" if asked_json else "text")


def tell(story: Story) -> None:
    """Send the log of all rooms to stderr as `story` wants it. May be called again with other settings."""
    handler = _Stderr()
    handler.setFormatter(_JsonLines() if story.log_format == "json" else _Sentences())
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h, _Stderr)]:
        root.removeHandler(old)
    root.addHandler(handler)
    # Kafka's client reports each refused connection as an error of its own; our message says it once.
    root.setLevel(logging.INFO if story.verbose else logging.CRITICAL)
    for room in ROOMS:
        logging.getLogger(room).setLevel(story.level)


def tell_when() -> None:
    """From now on, sentences start with their time, UTC: for commands that run for days. The journal notes it by itself."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Stderr) and isinstance(handler.formatter, _Sentences):
            handler.formatter.dated = "JOURNAL_STREAM" not in os.environ


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to whatever `sys.stderr` is at the time, so that lines do not tear a progress bar."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr

    def handleError(self, record: logging.LogRecord) -> None:
        """A reader of stderr that went away is no reason to stop. A stream that is writing as a signal comes takes no other line."""
        if isinstance(sys.exception(), RuntimeError):
            with suppress(OSError):
                os.write(2, f"{self.format(record)}\n".encode())


class _Sentences(logging.Formatter):
    """The message; warnings and errors say so first."""

    dated = False

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        text = text if record.levelno < logging.WARNING else f"{record.levelname.lower()}: {text}"
        return lines(f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%SZ} {text}" if self.dated else text)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": lines(record.getMessage()),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
