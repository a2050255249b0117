"""What a detector says, and what it remembers between checks. Values only; made by `optimizer.detectors.check`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

NAMED = 3  # findings in a sentence


@dataclass(frozen=True, slots=True)
class Count:
    """Checks in a row in which a line was reached: the detector's own, and the higher one where it has two."""

    key: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Average:
    """What a broker carried on average, in the unit of what is averaged; `holds` is a hash of its replicas and leaderships."""

    key: str
    load: float
    holds: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What a detector remembers, as plain data: ``dataclasses.asdict`` of it is JSON.

    Attributes
    ----------
    detector
        The detector that this is of; any other starts again.
    taken_at
        Moment of the snapshot that was counted last: a second look at it is no second check.
    counts
        By key, only those above 0.
    started
        Keys that are between start and stop of a hysteresis, by key.
    averages
        By key, of detectors with a `history_weight`.
    """

    detector: str = ""
    taken_at: str = ""
    counts: tuple[Count, ...] = ()
    started: tuple[str, ...] = ()
    averages: tuple[Average, ...] = ()

    def acted(self) -> Memory:
        """What is left once something was done about it: counts start again, hysteresis goes on until its stop. Averages stay:
        those of brokers whose replicas moved start again by themselves."""
        return replace(self, counts=())


@dataclass(frozen=True, slots=True)
class Finding:
    """A line that was reached, or came nearest to being.

    Attributes
    ----------
    detector
        Its kind, such as ``goal_band``.
    subject
        Name of a goal, a resource, or what else is measured.
    broker
        Wire id; None where it is about the cluster.
    value, line
        What was measured and the line of the detector, in the unit that docs/detectors.md gives for its kind.
    severity
        `value` over `line`: 1 at the line.
    count, needed
        Checks in a row, this one included, and how many it takes.
    fired
        Whether this alone makes its detector fire.
    behind
        Subject of the spread that the line comes down with; empty where there is none.
    """

    detector: str
    subject: str
    broker: int | None
    value: float
    line: float
    severity: float
    count: int
    needed: int
    fired: bool
    text: str
    behind: str = ""


@dataclass(frozen=True, slots=True)
class Detection:
    """The answer to one check.

    Attributes
    ----------
    fired
        Whether to plan now.
    severity
        Of what is worst, 1 at its line, also below it; 0 where nothing can be judged. For ``all_of`` of the mildest part.
    burden
        Sum of how far all severities are above 1; what `agrees` wants to see fall.
    findings
        What reached its line: fired first, then by severity, then in the order of the goals and by broker id.
    nearest
        What came nearest where nothing reached its line.
    unrepaired
        Replicas on dead and draining brokers, and partitions without a leader. No detector judges them, but `agrees` does.
    memory
        For the next check.
    notes
        What could not be judged and why.
    """

    fired: bool
    severity: float
    burden: float
    findings: tuple[Finding, ...]
    nearest: Finding | None
    memory: Memory
    unrepaired: int = 0
    notes: tuple[str, ...] = field(default=())

    def sentence(self, most: int = NAMED) -> str:
        """Why it fires or does not, for people; names at most so many findings."""
        if not self.findings:
            near = () if self.nearest is None else (f"nothing is over a line; nearest: {self.nearest.text}",)
            return _sentences([*near, *self.notes])
        texts = list(dict.fromkeys(f.text for f in self.findings))
        more = [f"{len(texts) - most:,} more"] if len(texts) > most else []
        return ("" if self.fired else "Not yet: ") + _sentences([*texts[:most], *more])


def _sentences(texts: list[str]) -> str:
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in texts)
