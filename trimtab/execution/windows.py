"""Maintenance windows: when steps of an execution may start, in UTC. ``22:00-06:00``, ``Sat,Sun 08:00-20:00``, ``Mon-Fri 01:00-05:00``.

Pure; used by the engine, the command line and the service's configuration. A window belongs to the day on which it starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY = 24 * 60  # minutes
WEEK = 7 * DAY
FORM = "expected a window in UTC such as 22:00-06:00 or Sat,Sun 08:00-20:00"


@dataclass(frozen=True, slots=True)
class Window:
    """Minutes of the day from `begin` on, `length` long, on these days of the week (0 is Monday)."""

    days: frozenset[int]
    begin: int
    length: int

    def begins(self) -> list[int]:
        """Minutes of the week."""
        return sorted(day * DAY + self.begin for day in self.days)


def parse_window(text: str) -> Window:
    """Raises `ValueError` with what was expected."""
    days, _, hours = text.strip().rpartition(" ")
    begin, dash, end = hours.partition("-")
    if not dash:
        raise ValueError(f"{FORM}, found {text!r}")
    first, last = _minutes(begin, text), _minutes(end, text)
    if first == DAY:
        raise ValueError(f"{FORM}, found {text!r}: start at 00:00 of the next day")
    return Window(_days(days, text), first, (last - first) % DAY or DAY)


def closed(windows: Iterable[str], now_ms: int) -> str:
    """Why no step may start now, with the next time that one may; empty where it may, or where there are no windows."""
    parsed = [parse_window(w) for w in windows]
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    minute = now.weekday() * DAY + now.hour * 60 + now.minute
    if not parsed or any((minute - begin) % WEEK < w.length for w in parsed for begin in w.begins()):
        return ""
    wait = min((begin - minute) % WEEK for w in parsed for begin in w.begins())
    at = (minute + wait) % WEEK
    return f"waits for the next window: {DAYS[at // DAY]} {at % DAY // 60:02}:{at % 60:02} UTC"


def _minutes(text: str, whole: str) -> int:
    hours, colon, minutes = text.strip().partition(":")
    if not colon or not hours.isdecimal() or not minutes.isdecimal() or len(minutes) != 2 or int(minutes) > 59:
        raise ValueError(f"{FORM}, found {whole!r}")
    found = int(hours) * 60 + int(minutes)
    if found > DAY:
        raise ValueError(f"{FORM}, found {whole!r}: a day ends at 24:00")
    return found


def _days(text: str, whole: str) -> frozenset[int]:
    if not text.strip():
        return frozenset(range(7))
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        begin, end = _day(first, whole), _day(last if dash else first, whole)
        found |= {(begin + i) % 7 for i in range((end - begin) % 7 + 1)}
    return frozenset(found)


def _day(text: str, whole: str) -> int:
    name = text.strip().capitalize()
    if name not in DAYS:
        raise ValueError(f"{FORM}, found {whole!r}: days are {', '.join(DAYS)}")
    return DAYS.index(name)
