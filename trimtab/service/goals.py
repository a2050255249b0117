"""The goals in force: read at the start, read again when their file or its calibration changes or an operator asks, kept where the new
ones are wrong.

The turn of one worker looks at the file; any thread may ask for the goals.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Event, Lock

from cluster_model.errors import ConfigurationError
from cluster_model.plain_text import one_line
from goals.document import calibration_path, load_goals
from goals.model import Goal, GoalSet, UsageDistribution

log = logging.getLogger(__name__)

STALE_DAYS = 30  # after the last day of its history a calibration is old
DAY_MS = 86_400_000
LOOK = 1.0  # seconds between two looks at the file; it counts when two looks find the same, since an editor may be writing

Mark = tuple[int, int, int] | None
"""Modification time in ns, size and inode of a file; None where it is not there."""


class GoalsKeeper:
    """Goals of a file or preset.

    Parameters
    ----------
    changed
        Called after other goals came into force, with a sentence.
    wall_ms
        The time, Unix ms.

    Raises
    ------
    ConfigurationError
        The goals that it starts with are wrong.
    """

    def __init__(self, path: Path | None, preset: str | None, changed: Callable[[str], None], wall_ms: Callable[[], int]) -> None:
        self._path, self._preset, self._changed, self._wall_ms = path, preset, changed, wall_ms
        self._warned_ms: int | None = None
        self._lock, self._asked = Lock(), Event()
        self._beside = self._calibration()
        self._mark = self._seen = self._look()
        self._goals = load_goals(path, preset)
        for note in self._goals.notes:
            log.warning("%s", note)
        self.error: str | None = None
        self._warn()

    @property
    def stale(self) -> str | None:
        """That the calibration of the goals is old, in a sentence; None where it is not."""
        given = self._goals.calibrated
        if given is None:
            return None
        try:
            last = date.fromisoformat(given.span.rpartition(" ")[2])
        except ValueError:
            return None
        days = (datetime.fromtimestamp(self._wall_ms() / 1000, UTC).date() - last).days
        if days <= STALE_DAYS:
            return None
        return f"The calibration {given.source} is old: its history ended {days} days ago, on {last}. Run trimtab calibrate again."

    def _warn(self) -> None:
        """Say once a day that the calibration is old."""
        now, told = self._wall_ms(), self.stale
        if told is None:
            self._warned_ms = None
        elif self._warned_ms is None or now - self._warned_ms >= DAY_MS:
            self._warned_ms = now
            log.warning("%s", told)

    @property
    def current(self) -> GoalSet:
        return self._goals

    @property
    def source(self) -> str:
        return str(self._path) if self._path is not None else f"preset {self._preset}"

    def ask(self) -> None:
        """Read the file again at the next turn, changed or not."""
        self._asked.set()

    def turn(self) -> float:
        """Look whether the file, or the calibration that it names, is another one, and settled."""
        mark = self._look()
        settled, self._seen = mark == self._seen, mark
        asked = self._asked.is_set()
        if asked or (settled and mark != self._mark):
            self._asked.clear()
            self._mark = mark
            self.reload()
        self._warn()
        return LOOK

    def reload(self) -> None:
        """Take the goals of the file, or keep the old ones and say why."""
        with self._lock:
            self._beside = self._calibration()
            try:
                goals = load_goals(self._path, self._preset)
            except ConfigurationError as error:
                if self.error != str(error):
                    log.error("the old goals stay in force: %s", error)
                self.error = str(error)
                return
            if self.error is not None:
                log.info("%s is right again", self.source)
            self.error = None
            before, self._goals = self._goals, goals
        if before.digest == goals.digest and before.policy == goals.policy:
            return
        for note in goals.notes:
            log.warning("%s", note)
        log.info("goals reloaded from %s: %d goals, %s", self.source, len(goals.goals), goals.digest)
        self._changed("goals reloaded")

    def _calibration(self) -> Path | None:
        return None if self._path is None else calibration_path(self._path)

    def _look(self) -> tuple[Mark, Mark]:
        """Of the goals file, and of the calibration file."""
        return _mark(self._path), _mark(self._beside)


def _mark(path: Path | None) -> Mark:
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found is not None else None


def goals_text(goals: GoalSet) -> str:
    """The goals as YAML with every default written out; reads back as the same goals."""
    from ruamel.yaml import YAML

    constraints: dict[str, object] = {key: list(value) for key, value in asdict(goals.constraints).items() if key != "broker_sets"}
    if goals.constraints.broker_sets:
        constraints["broker_sets"] = [
            {"name": one.name, "brokers": list(one.brokers), **({"topics": list(one.topics)} if one.topics else {})}
            for one in goals.constraints.broker_sets
        ]
    document: dict[str, object] = {"version": 1, "goals": [_goal(g) for g in goals.goals], "constraints": constraints}
    if goals.policy:
        document["policy"] = goals.policy
    out = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.sort_base_mapping_type_on_output = False, False  # type: ignore[assignment]
    yaml.dump(document, out)
    given = goals.calibrated.sentence if goals.calibrated is not None else ""
    comment = f"# {one_line(given)}\n" if given else ""
    return f"# in force: {goals.source}, {goals.digest}\n{comment}{out.getvalue()}"


def _goal(goal: Goal) -> dict[str, object]:
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(goal).items() if value is not None}
    kind, name = values.pop("kind"), values.pop("name")
    if goal.hard:
        values.pop("weight")
    if isinstance(goal, UsageDistribution):
        is_share = values.pop("var_is_share")
        if not is_share:
            values["var"] = f"{Decimal(goal.var):f}B"
    return {"kind": kind, "name": name, **values}
