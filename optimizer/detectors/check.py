"""One check: gauges against their lines, counts in a row and hysteresis from memory to memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cluster_model.quantities import percent
from cluster_model.snapshot import BoolArray, FloatArray, Snapshot
from goals.model import GoalSet
from goals.policy import PolicyDocument
from goals.policy_detectors import AllOf, AnyOf, Hysteresis, Persist
from goals.score import TOLERANCE
from optimizer.detectors.averages import Averages
from optimizer.detectors.gauge import Gauge, reached
from optimizer.detectors.rules import Rule, gauges
from optimizer.detectors.sight import Sight
from optimizer.detectors.values import Count, Detection, Finding, Memory
from optimizer.judgement import Judgement

IN_PERCENT = ("goal_band", "cv", "absolute", "above_mean")  # detectors that tell their values so


def detect(
    policy: PolicyDocument | GoalSet, snapshot: Snapshot, goals: GoalSet, memory: Memory | None = None,
    judgement: Judgement | None = None,
) -> Detection:  # fmt: skip
    """Whether something is out of line in a snapshot, by the `detector` of a policy. See `optimizer.detectors`.

    `judgement` is that of the snapshot under `goals`, where it is known.
    """
    if isinstance(policy, GoalSet):
        policy = policy_of(policy)
    detector = policy.detector
    name = _name(detector)
    before = memory if memory is not None and memory.detector == name else Memory(name)
    rules: Sequence[Rule]
    match detector:
        case AnyOf():
            rules = detector.any_of
        case AllOf():
            rules = detector.all_of
        case _:
            rules = [detector]
    again = bool(snapshot.taken_at) and snapshot.taken_at == before.taken_at
    averages = Averages({a.key: a for a in before.averages}, snapshot, again)
    sight = Sight(snapshot, goals, judgement, averages)
    parts = [_part(index, rule, gauges(rule, sight), before, again) for index, rule in enumerate(rules)]
    every = isinstance(detector, AllOf)
    fired = [p.fired for p in parts]
    severities = [p.severity for p in parts]
    findings = sorted((f for p in parts for f in p.findings), key=lambda f: (not f.fired, -f.severity))
    nearest = max((p.nearest for p in parts if p.nearest is not None), key=lambda f: f.severity, default=None)
    return Detection(
        fired=all(fired) if every else any(fired),
        severity=min(severities) if every else max(severities),
        burden=sum(p.burden for p in parts),
        findings=tuple(findings),
        nearest=None if findings else nearest,
        memory=Memory(
            detector=name,
            taken_at=snapshot.taken_at,
            counts=tuple(c for p in parts for c in p.counts),
            started=tuple(key for p in parts for key in p.started),
            averages=tuple(averages.made.values()),
        ),
        unrepaired=sight.unrepaired + (sight.astray if policy.amount is None else 0),  # the parts of a policy bring none home
        notes=tuple(sight.notes),
    )


def policy_of(goals: GoalSet) -> PolicyDocument:
    """The policy of a goals file with its defaults."""
    return PolicyDocument.model_validate(goals.policy)


def agrees(policy: PolicyDocument, before: Detection, after: Detection) -> bool:
    """Whether the detector goes along with a plan, as `accept` asks: always with ``score``, and with a plan that repairs; else what
    is over its lines must become less. Where nothing is over a line, a detector that fires (between start and stop of its hysteresis)
    wants the worst to come down, and one that does not fire is content while nothing gets over a line.

    Where a spread fires, its outliers have no say: their line comes down with it, so that brokers get beyond it by standing.

    `after` is the detection on the snapshot the plan leads to, with the memory that `before` was made from.
    """
    if policy.accept == "score" or after.unrepaired < before.unrepaired:
        return True
    fires = {f.subject for f in before.findings if f.fired}
    return _better(_without(before, fires), _without(after, fires))


def _without(found: Detection, spreads: set[str]) -> Detection:
    """Without the outliers of some spreads."""
    kept = tuple(f for f in found.findings if f.behind not in spreads)
    return replace(found, findings=kept, burden=sum(max(f.severity - 1.0, 0.0) for f in kept))


def _better(before: Detection, after: Detection) -> bool:
    if after.burden != before.burden:
        return after.burden < before.burden
    if before.fired:  # what is below its line and fires nothing has no say: some lines come down together with the spread
        return _pressing(after) < _pressing(before)
    return after.severity < before.severity or before.burden == 0.0


def no_worse(before: Detection, after: Detection) -> bool:
    """Whether neither the sum nor the worst of what is over its line is more in `after`, but for roundings."""
    return after.burden <= before.burden + TOLERANCE and _pressing(after) <= _pressing(before) + TOLERANCE


def _pressing(found: Detection) -> float:
    """Severity of the worst of what fires."""
    return max((f.severity for f in found.findings if f.fired), default=0.0)


def _name(detector: Rule | AnyOf | AllOf) -> str:
    return hashlib.sha256(detector.model_dump_json().encode()).hexdigest()[:16]


@dataclass
class _Part:
    """What one detector of a policy finds; filled gauge by gauge."""

    severity: float = 0.0
    burden: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    nearest: Finding | None = None
    counts: list[Count] = field(default_factory=list)
    started: list[str] = field(default_factory=list)

    @property
    def fired(self) -> bool:
        return any(f.fired for f in self.findings)


def _part(index: int, rule: Rule, measured: list[Gauge], memory: Memory, again: bool) -> _Part:
    part = _Part()
    counts, started = {c.key: c for c in memory.counts}, set(memory.started)
    for gauge in measured:
        if len(gauge.value):
            _read(part, index, rule, gauge, counts, started, again)
    return part


def _read(
    part: _Part, index: int, rule: Rule, gauge: Gauge, counts: dict[str, Count], started: set[str], again: bool
) -> None:
    persist = rule.persist or Persist()
    latch = rule.hysteresis if gauge.latched else None
    keys = [f"{index}/{'' if b is None else b}/{gauge.subject}" for b in map(gauge.broker, range(len(gauge.value)))]
    on = np.array([key in started for key in keys], dtype=np.bool_)
    line, hits = _lines(gauge, latch, on)
    severity = gauge.value / line
    part.burden += float(np.maximum(severity - 1.0, 0.0).sum())
    part.severity = max(part.severity, float(severity.max()))
    high = reached(gauge.value, gauge.high, False) if gauge.high is not None else np.zeros(len(keys), np.bool_)

    def finding(row: int, count: int, needed: int, fired: bool) -> Finding:
        head, tail = gauge.words(row)
        if latch is not None:
            start, stop = (percent(x) if rule.kind in IN_PERCENT else f"{x:g}" for x in (latch.start, latch.stop))
            tail = f"; the hysteresis starts at {start} and stops at {stop}"
        return Finding(
            detector=rule.kind, subject=gauge.subject, broker=gauge.broker(row), value=float(gauge.value[row]),
            line=float(line[row]), severity=float(severity[row]), count=count, needed=needed, fired=fired,
            text=head + _run(count, needed, fired, persist.clear_on_miss) + tail, behind=gauge.behind,
        )  # fmt: skip

    for row in np.flatnonzero(hits).tolist():
        key = keys[row]
        was = counts.get(key, Count(key, 0, 0))
        low = was.low + 1 if not again or was.low == 0 else was.low
        up = (was.high + 1 if not again or was.high == 0 else was.high) if high[row] else _missed(was.high, persist)
        strong = gauge.high is not None and up >= persist.hits_high
        fired = bool(on[row]) or low >= persist.hits_low or strong
        part.counts.append(Count(key, low, up))
        if fired and latch is not None:
            part.started.append(key)
        steps = (up, persist.hits_high) if strong else (low, persist.hits_low)
        part.findings.append(finding(row, *steps, fired))
    if not persist.clear_on_miss:
        part.counts.extend(counts[keys[row]] for row in np.flatnonzero(~hits).tolist() if keys[row] in counts)
    if not hits.any():
        worst = int(np.argmax(severity))
        if part.nearest is None or severity[worst] > part.nearest.severity:
            part.nearest = finding(worst, 0, persist.hits_low, False)


def _missed(count: int, persist: Persist) -> int:
    return 0 if persist.clear_on_miss else count


def _lines(gauge: Gauge, latch: Hysteresis | None, on: BoolArray) -> tuple[FloatArray, BoolArray]:
    """The line of each number, and whether it is reached: beyond `stop` where it has started, else at `start` or the own line."""
    if latch is None:
        return gauge.line, reached(gauge.value, gauge.line, gauge.strict)
    line = np.full(len(gauge.value), latch.start)
    going = reached(gauge.value, latch.stop, True)
    return line, np.where(on, going, reached(gauge.value, line, False))


def _run(count: int, needed: int, fired: bool, in_a_row: bool) -> str:
    """How long it has been so, where that says anything."""
    if needed <= 1 or count == 0:
        return ""
    checks = f"{count} check{'s' if count != 1 else ''}{' in a row' if in_a_row and count > 1 else ''}"
    return f" for {checks}" if fired else f" for {checks}, {needed} needed"
