"""What is worth telling people who do not look at the page: plans that wait or ended, and a cluster that is unwell or well again. Pure.

Used by `trimtab.service.notify`, which sends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster_model.trust import spoken
from optimizer.report.units import count, listing, size
from trimtab.http.headline import Headline
from trimtab.service.webhook import Event

if TYPE_CHECKING:
    from trimtab.history.records import OutcomeKind
    from trimtab.service.desk import Held

PASSING = "Settling"  # neither unwell nor well: nothing has to be done, and nothing is done yet


@dataclass(frozen=True, slots=True)
class News:
    """One message: what kind of news it is, and sentences."""

    event: Event
    text: str


def of_plan(held: Held, kind: OutcomeKind | None, *, waits: bool) -> News | None:
    """The news in what became of a plan; None where there is none. `waits`: it can be approved, and was not yet."""
    name = f"Plan {held.plan.plan_id[:19]} ({_size(held)})"
    note = held.note.rstrip(".")
    match held.state:
        case "proposed" if waits:
            return News("waiting", f"{name} waits for approval.")
        case "done" if kind == "failed":
            return News("failed", f"{name} was carried out in part: {note}.")
        case "done" if kind is not None:
            return News("executed", f"{name} was carried out.")
        case "failed":
            return News("failed", f"{name} failed{f': {note}' if note else ''}.")
        case "cancelled":
            return News("failed", f"{name} was not carried out to the end: {note}.")
    return None


def _size(held: Held) -> str:
    it = held.plan.summary
    parts = [count(it.replica_moves, "replica move")] if it.replica_moves else []
    parts += [count(it.leadership_changes, "leadership change")] if it.leadership_changes else []
    return listing(parts) + (f", {size(it.bytes_to_move)}" if it.bytes_to_move else "")


class Weather:
    """When the cluster became unwell, worse, or well again, each told once it has lasted.

    Parameters
    ----------
    after_ms
        How long it has to last.
    """

    def __init__(self, after_ms: int) -> None:
        self._after_ms = after_ms
        self.forget()

    def forget(self) -> None:
        """Another instance tells from here on, or nothing is known."""
        self._told: tuple[bool, int] | None = None  # whether it was severe, and since when it is so
        self._now: str = ""
        self._since_ms: int | None = None

    def look(self, seen: Headline | None, now_ms: int) -> News | None:
        """The news at `now_ms`, where there is any."""
        now = "well" if seen is None else "passing" if seen.label == PASSING else "severe" if seen.severe else "unwell"
        if now != self._now or self._since_ms is None:
            keeps = {now, self._now} <= {"severe", "unwell"}  # unwell all the time
            self._now, self._since_ms = now, self._since_ms if keeps and now == "unwell" and self._since_ms is not None else now_ms
        if now_ms - self._since_ms < self._after_ms:
            return None
        if seen is None:
            told, self._told = self._told, None
            return None if told is None else News("well", f"The cluster is well again, after {spoken(max(self._since_ms - told[1], 0))}.")
        if now == "passing" or (self._told is not None and (self._told[0] or not seen.severe)):
            return None
        worse = self._told is not None
        self._told = (seen.severe, self._since_ms if self._told is None else self._told[1])
        what = "The cluster is worse now" if worse else "The cluster is unwell"
        return News("unwell", " ".join([f"{what}: {seen.sentence}", *seen.facts, seen.help]).strip())
