"""The plan file (docs/contract.md, section 4) as text.

Called by the command line and the service. One action, proposal, goal or broker a line; keys in a fixed
order, brokers ascending, numbers with 9 significant digits, ASCII only: equal plans give equal bytes.
Nothing here looks at what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii as text_of
from math import isfinite

import numpy as np

from kernels.compiled import is_compiled
from optimizer.actions import ActionLog, TableScores
from optimizer.plan import Action, Band, BrokerOutcome, Change, GoalOutcome, GoalScore, GoalState, Plan, ScoreRows
from optimizer.report.score_text import ScoreTexts, write

OPTION_ORDER = (
    "seed",
    "acceptance",
    "max_moves",
    "max_bytes",
    "max_partitions",
    "move_cost",
    "min_gain",
    "noise",
    "restarts",
    "add_brokers",
    "remove_brokers",
    "exclude_brokers",
    "exclude_topics",
    "scale_load",
    "replication_factor",
    "load",
    "loads_digest",
)
CHUNK = 512  # lines a piece
SLOT = "\0"  # where the brokers go in the template of an action; ASCII JSON never holds it


def to_json(plan: Plan) -> str:
    """The plan file; ends with a line feed.

    Raises
    ------
    ValueError
        A number of the plan is NaN or infinite (a bug of the code that made it).

    Notes
    -----
    Linear in actions times goals; `iter_json` gives the same text in pieces.
    """
    return "".join(iter_json(plan))


def iter_json(plan: Plan) -> Iterator[str]:
    """The text of `to_json` in pieces of some hundred lines, for writing long plans without holding them
    twice.
    """
    snapshot = {
        "cluster_id": plan.cluster_id,
        "taken_at": plan.taken_at,
        "digest": plan.snapshot_digest,
        "storage": plan.storage,
    }
    yield f'{{"version":1,\n"plan_id":{text_of(plan.plan_id)},\n"snapshot":{value_text(snapshot)},\n'
    yield f'"goals_digest":{text_of(plan.goals_digest)},\n"options":{_options(plan.options)},\n'
    yield from _lines("actions", ActionWriter([g.name for g in plan.goals]).lines(plan.actions))
    topics: dict[str, str] = {}
    yield from _lines("proposals", (_change(c, topics) for c in plan.proposals))
    yield from _lines("goals", map(_goal, plan.goals))
    s, b = plan.summary, plan.lower_bounds
    unsized = f',"unsized_moves":{s.unsized_moves:d}' if s.unsized_moves else ""
    yield (
        f'"summary":{{"actions":{s.actions:d},"replica_moves":{s.replica_moves:d},'
        f'"leadership_changes":{s.leadership_changes:d},"partitions":{s.partitions:d},"bytes_to_move":{s.bytes_to_move:d}{unsized}}},\n'
        f'"lower_bounds":{{"replica_moves":{b.replica_moves:d},"bytes_to_move":{b.bytes_to_move:d}}},\n'
    )
    yield from _lines("brokers", map(_broker, sorted(plan.brokers, key=lambda x: x.id)))
    yield from _lines("skipped", (value_text({"what": x.what, "reason": x.reason}) for x in plan.skipped))
    yield from _lines("notes", map(text_of, plan.notes))
    yield from _lines("bands", (f"{text_of(name)}:{_bands(of)}" for name, of in plan.bands.items()), "{}")
    stopped = ',\n"stopped":true' if plan.stopped else ""
    if plan.cannot_be_emptied:
        stopped = f',\n"cannot_be_emptied":[{",".join(map(str, plan.cannot_be_emptied))}]{stopped}'
    if plan.batches is not None:
        cut = plan.batches
        stopped = f',\n"batches":{value_text({"count": cut.count, "pause": cut.pause, "left": cut.left, "of": cut.of})}{stopped}'
    yield f'"hard_violations_left":{plan.hard_violations_left:d}{stopped}}}\n'


class ActionWriter:
    """Lines of actions; keeps the formatted names and shapes that recur.

    Parameters
    ----------
    goals
        Names in the order of the report.
    """

    def __init__(self, goals: Sequence[str]) -> None:
        self._rank = {name: i for i, name in enumerate(goals)}
        self._ordered: dict[tuple[str, ...], tuple[list[int], str]] = {}  # goals in order, and their template
        self._topics: dict[str, str] = {}

    def lines(self, actions: Iterable[Action]) -> Iterator[str]:
        if not is_compiled(write) or not isinstance(actions, ActionLog):
            yield from map(self.line, actions)
            return
        names = actions.frame.names
        texts = ScoreTexts(names, [actions.frame.index[name] for name in self._in_order(names)])
        for made, table, judged in actions.blocks():
            written = texts.written(
                table.goal_score, table.first_broker, table.broker.astype(np.int64), table.score_before[:], table.score_after, judged
            )
            yield from map(self.line, made, written)

    def line(self, a: Action, scores: str | None = None) -> str:
        """One action as one line of JSON; `scores` are the text of its goal scores, where that is known."""
        changes = ",".join([_change(c, self._topics) for c in a.changes])
        repairs = ",".join(map(text_of, a.repairs))
        return (
            f'{{"seq":{a.seq:d},"type":"{a.type}","score":{_number(a.score)},"repairs":[{repairs}],'
            f'"reason":{text_of(a.reason)},"bytes_to_move":{a.bytes_to_move:d},"changes":[{changes}],'
            f'"goal_scores":{{{self._goal_scores(a.goal_scores) if scores is None else scores}}}}}'
        )

    def _goal_scores(self, scores: Mapping[str, GoalScore]) -> str:
        if isinstance(scores, TableScores):
            scores = scores.rows()
        if not isinstance(scores, ScoreRows) or not scores.frame.everywhere.issuperset(scores.brokers):
            return self._one_by_one(scores)
        names = scores.frame.names
        known = self._ordered.get(names)
        if known is None:
            goals = [scores.frame.index[name] for name in self._in_order(names)]
            template = ",".join([_score_template(names[g]) for g in goals])
            known = self._ordered[names] = goals, template
        goals, template = known
        brokers, before, after = scores.brokers, scores.before, scores.after
        if len(brokers) > 1:
            rows = sorted(range(len(brokers)), key=brokers.__getitem__)
            brokers, before, after = [brokers[n] for n in rows], [before[n] for n in rows], [after[n] for n in rows]
        numbers: list[float] = []
        for g in goals:
            numbers.append(scores.score[g])
            numbers += [row[g] for row in before]
            numbers += [row[g] for row in after]
        if not isfinite(sum(numbers)):
            raise ValueError(f"a goal score that is not a finite number: {dict(scores)}")
        named = ",".join([f'"{b:d}":%.9g' for b in brokers])
        return template.replace(SLOT, named) % tuple(numbers)

    def _one_by_one(self, scores: Mapping[str, GoalScore]) -> str:
        """Where goals name different brokers: one that has no capacity is left out of a limit."""
        parts = []
        for name in self._in_order(tuple(scores)):
            one = scores[name]
            before, after = ({str(b): of[b] for b in sorted(of)} for of in (one.before, one.after))
            parts.append(f"{text_of(name)}:{value_text({'score': one.score, 'before': before, 'after': after})}")
        return ",".join(parts)

    def _in_order(self, names: tuple[str, ...]) -> list[str]:
        last = len(self._rank)
        return sorted(names, key=lambda n: (self._rank.get(n, last), n))


def _score_template(name: str) -> str:
    quoted = text_of(name).replace("%", "%%")
    return f'{quoted}:{{"score":%.9g,"before":{{{SLOT}}},"after":{{{SLOT}}}}}'


def _lines(key: str, items: Iterable[str], brackets: str = "[]") -> Iterator[str]:
    """`key` with its items, one a line."""
    yield f'"{key}":{brackets[0]}'
    pending: list[str] = []
    lead = "\n"
    for item in items:
        pending.append(item)
        if len(pending) == CHUNK:
            yield lead + ",\n".join(pending)
            pending.clear()
            lead = ",\n"
    if pending:
        yield lead + ",\n".join(pending)
    yield f"{brackets[1]},\n"


def _number(value: float | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(int(value)) if not isinstance(value, bool) else ("true" if value else "false")
    if not isfinite(value):
        raise ValueError(f"expected a finite number, found {value}")
    return "%.9g" % value  # noqa: UP031 - the same form as the templates


def value_text(value: object) -> str:
    """Any JSON-shaped value; mappings keep their order."""
    match value:
        case None | bool() | int() | float():
            return _number(value)
        case str():
            return text_of(value)
        case Mapping():
            return "{" + ",".join(f"{text_of(str(k))}:{value_text(v)}" for k, v in value.items()) + "}"
        case Sequence():
            return "[" + ",".join(map(value_text, value)) + "]"
        case _:
            raise TypeError(f"expected a JSON-shaped value, found {type(value).__name__}")


def _options(options: Mapping[str, object]) -> str:
    known = [k for k in OPTION_ORDER if k in options]
    rest = sorted(k for k in options if k not in OPTION_ORDER)
    return value_text({k: options[k] for k in (*known, *rest)})


def _change(c: Change, topics: dict[str, str]) -> str:
    topic = topics.get(c.topic)
    if topic is None:
        topic = topics[c.topic] = text_of(c.topic)
    before, after = c.leader_before, c.leader_after
    return (
        f'{{"topic":{topic},"partition":{c.partition:d},'
        f'"replicas_before":[{",".join(map(str, c.replicas_before))}],'
        f'"replicas_after":[{",".join(map(str, c.replicas_after))}],'
        f'"leader_before":{"null" if before is None else before},'
        f'"leader_after":{"null" if after is None else after}}}'
    )


def _state(state: GoalState | None) -> dict[str, object] | None:
    if state is None:
        return None
    return {
        "violations": state.violations,
        "mean": state.mean,
        "max_deviation": state.max_deviation,
        "cv": state.cv,
        "in_band": state.in_band,
        **({} if state.misplaced is None else {"misplaced": state.misplaced}),
    }


def _goal(g: GoalOutcome) -> str:
    return value_text(
        {
            "name": g.name,
            "kind": g.kind,
            "resource": g.resource,
            "hard": g.hard,
            "weight": g.weight,
            "status": g.status,
            "before": _state(g.before),
            "after": _state(g.after),
            "explanation": g.explanation,
            **({"from_calibration": g.from_calibration} if g.from_calibration else {}),
            **({"unknown": g.unknown} if g.unknown else {}),
        }
    )


def _broker(b: BrokerOutcome) -> str:
    return value_text(
        {
            "id": b.id,
            "rack": b.rack,
            "state": b.state,
            "before": b.before,
            "after": b.after,
            "scores_before": b.scores_before,
            "scores_after": b.scores_after,
            "violates": list(b.violates),
            "why": b.why,
        }
    )


def _bands(of_broker: Mapping[int, Band]) -> str:
    return value_text(
        {
            str(b): {
                "mean": x.mean,
                "low": x.low,
                "high": x.high,
                "var_low": x.var_low,
                "var_high": x.var_high,
            }
            for b, x in sorted(of_broker.items())
        }
    )
