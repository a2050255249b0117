"""A whole backtest: cut the history, search on its first part, validate what was chosen on the rest.

Called by ``trimtab backtest`` and by benchmarks. Wires; what is scored and how stands in the other modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from scipy.stats import norm

from cluster_model.errors import InputError, Problem
from goals.calibration import Tried
from spark.backtest.configuration import Configuration
from spark.backtest.difference import Difference, Each
from spark.backtest.outcome import Outcome
from spark.backtest.packing import sizes
from spark.backtest.pareto import HOURS, ROOM, SURE, Rule, choose, cost_difference, hours_difference, leading, ranks
from spark.backtest.search import FINAL, Evaluate, Method, Space, Trained, estimates, finalists, search
from spark.backtest.tasks import Job, replayed
from spark.backtest.terms import allowed, terms
from spark.progress import Shown, followed

Tell = Callable[[str], None]
# Times `phases` that the goals as they are are replayed: their luck is in every comparison. In the search all others are replayed once, in
# the choice and the test `phases` times; the choice itself is tested as often as the goals as they are.
OFTEN = 3
TESTED = 4  # rows, the choice among them, that are replayed on the held-out span
CONFIRMED = "confirmed"


@dataclass(frozen=True)
class Wish:
    """How to search, and by what rule to choose. `held_out` is the share of the stretches, the last ones, that choosing never sees.
    `phases` is how often finalists are replayed, with looks at other times of the day."""

    method: Method = "halving"
    trials: int = 60
    held_out: float = 1.0 / 3.0
    rule: Rule = field(default_factory=Rule)
    phases: int = 4
    seed: int = 0


@dataclass(frozen=True)
class Validated:
    """One configuration on the held-out stretches, with what it did on those before; `hours` and `cost` are what it has more than
    the goals as they are, `verdict` what the held-out stretches say of it."""

    trained: Trained
    each: Each
    pareto: bool
    chosen: bool
    hours: Difference
    cost: Difference
    verdict: str = ""

    @cached_property
    def outcome(self) -> Outcome:
        return sum(self.each, Outcome())


@dataclass(frozen=True)
class Result:
    """What a backtest found.

    Attributes
    ----------
    searched
        All that was tried, on the training stretches.
    table
        On the held-out stretches: the goals as they are first, then the chosen one and the others that might have been; last what comes of
        no plan at all, and of plans that know the coming day. What they did before is on the choosing stretches.
    terms
        What had to hold, as said before the first replay.
    confirmed
        Whether the chosen one is better there too; only then its weights are recommended.
    """

    searched: tuple[Trained, ...]
    table: tuple[Validated, ...]
    training: tuple[int, ...]
    choosing: tuple[int, ...]
    held_out: tuple[int, ...]
    why: str
    confirmed: bool
    verdict: str
    replays: int
    cpu: float
    terms: tuple[str, ...] = ()

    @property
    def own(self) -> Validated:
        return self.table[0]

    @property
    def chosen(self) -> Validated:
        return next(row for row in self.table if row.chosen)

    def rows(self) -> list[Tried]:
        """The table as the calibration file has it; where the choice is not confirmed, the goals as they are count as chosen."""
        return [tried(row, row.chosen if self.confirmed else row is self.own, self.own) for row in self.table]


def backtest(
    spark: SparkSession,
    series: DataFrame,
    job: Job,
    space: Space,
    wish: Wish,
    tell: Tell,
    name: str = "history",
    shown: Shown | None = None,
) -> Result:
    """Search and validate on packed series.

    Parameters
    ----------
    tell
        Told in a sentence of what is started.
    shown
        Hears of the replays of this step that are done, and of how many they are.

    Raises
    ------
    InputError
        There are fewer than two stretches, or they are too large (see `packing.sizes`).
    """
    spans = split(sizes(series, job.cut, name), wish.held_out, name)
    spent: list[tuple[int, float]] = []

    def evaluate(configurations: Sequence[Configuration], stretches: Sequence[int], phases: int) -> Sequence[tuple[Outcome, ...]]:
        number = len(configurations) * len(stretches)
        times = f", {phases} times" if phases > 1 else ""
        tell(f"replaying {_count(len(configurations), 'configuration')} on {_count(len(stretches), 'stretch', 'es')} of history{times}")
        done = spark.sparkContext.accumulator(0)
        with followed(lambda: (int(done.value), number), shown):
            found = replayed(spark, series, job, configurations, stretches, phases, done)
        spent.append((number * phases, found.cpu))
        return found.outcomes

    result = found(space, wish, spans, evaluate, tell)
    return replace(result, replays=sum(n for n, _ in spent), cpu=sum(s for _, s in spent))


def found(space: Space, wish: Wish, spans: Spans, evaluate: Evaluate, tell: Tell) -> Result:
    """The same where `evaluate` replays: search on the training span, choose on the next, test on the held-out one."""
    rule, often = wish.rule, OFTEN * wish.phases
    said = terms(_sizes(spans), FINAL, wish.phases, TESTED, rule)
    for sentence in said:
        tell(sentence)
    searched = search(space, wish.method, wish.trials, wish.seed, spans.training, evaluate, rule, often)
    best = [searched[n].configuration for n in finalists(searched, rule)]
    tell("choosing: replaying the finalists on all stretches before the held-out part")
    final = _final(space.own, best, spans, searched[0], evaluate, wish)
    each, hours = [t.each for t in final], estimates([*searched, *final], final)
    choice = choose(each, 0, rule, hours)
    tell("testing on the held-out part")
    ends = [Trained(c, (), ()) for c in (space.never, space.hindsight)]
    order = list(dict.fromkeys([0, choice.row, *leading(each, 0, rule, hours)]))[: 1 + TESTED]
    rows = [*(final[n] for n in order), *ends]
    configurations, most = [row.configuration for row in rows], 2 if choice.row else 1
    came = [
        *evaluate(configurations[:most], spans.held_out, often),
        *evaluate(configurations[most:], spans.held_out, wish.phases),
    ]
    rank = ranks([(t.outcome.out_of_band_hours, t.outcome.cost) for t in final])
    table = [
        Validated(t, each, n >= 0 and rank[n] == 0, n == choice.row, hours_difference(came[0], each), cost_difference(came[0], each))
        for n, t, each in zip([*order, -1, -1], rows, came, strict=True)
    ]
    table = [*judged(table[:-2], rule), *table[-2:]]
    own, chosen, why = table[0], next(row for row in table if row.chosen), choice.why
    confirmed, verdict = confirmation(own, chosen, rule)
    if not confirmed:
        n = instead(table)
        if n is None:
            verdict = f"{verdict} Nothing is recommended. {ceiling(table[1:-2], rule)}"
        else:
            table = [replace(row, chosen=m == n) for m, row in enumerate(table)]
            own, chosen, confirmed = table[0], table[n], True
            first = f"{why}. It is not confirmed" if choice.row else "Before the held-out part, no configuration showed a gain"
            why = f"{first}; row {n + 1} of the table is confirmed on the held-out part, and is the choice instead"
            verdict = f"{verdict} {told_of(own, chosen, f'row {n + 1}')}"
    verdict = f"{verdict} {avoidable(own, chosen if confirmed else own, table[-2], table[-1])}"
    return named(
        Result(searched, tuple(table), spans.training, spans.choosing, spans.held_out, why, confirmed, verdict, 0, 0.0, said)
    )


def _final(
    own: Configuration, best: Sequence[Configuration], spans: Spans, before: Trained, evaluate: Evaluate, wish: Wish
) -> list[Trained]:
    """The goals as they are and the `best` of the search, on all stretches before the held-out ones, at all phases. (Hours differ by
    stretch more than configurations do, so the choice sees as many as there are.) `before`: the goals as they are in the search."""
    at = tuple(sorted({*spans.training, *spans.choosing}))
    known = dict(zip(before.at, before.each, strict=True))
    more = [n for n in at if n not in known]
    if more:
        (mine,) = evaluate([own], more, OFTEN * wish.phases)
        known |= zip(more, mine, strict=True)
    again = evaluate(best, at, wish.phases)
    return [Trained(own, at, tuple(known[n] for n in at)), *(Trained(c, at, each) for c, each in zip(best, again, strict=True))]


class Spans(NamedTuple):
    """Stretches that are searched on, the newest first, chosen on, and tested on."""

    training: tuple[int, ...]
    choosing: tuple[int, ...]
    held_out: tuple[int, ...]


def _sizes(spans: Spans) -> tuple[int, int, int]:
    apart = spans.choosing if set(spans.choosing) - set(spans.training) else ()
    return len(spans.training), len(apart), len(spans.held_out)


def split(stretches: Sequence[int], held_out: float, name: str) -> Spans:
    """The last stretches (at least one) for validation; of those before by turns one for searching and one for choosing, so that each has
    some of all that changes with time. Of two stretches the first serves for both."""
    if len(stretches) < 2:
        what = f"expected at least two stretches, one for the search and one held out for the test, found {len(stretches)}"
        raise InputError(
            name, [Problem("", f"{what}; make stretches shorter (--stretch) or give more history")]
        )
    last = min(len(stretches) - 1, max(1, round(held_out * len(stretches))))
    before = tuple(stretches[:-last])
    return Spans(before[::2][::-1], before[1::2] or before, tuple(stretches[-last:]))


def confirmation(own: Validated, best: Validated, rule: Rule) -> tuple[bool, str]:
    """Whether held-out weeks bear the choice out, and a sentence that says why or why not."""
    if best is own:
        return False, "No gain was found before the held-out part."
    against = doubt(best, rule)
    if against is None:
        return True, told_of(own, best)
    return False, f"{_figures(own, best)}. Not confirmed: {against}."


def told_of(own: Validated, best: Validated, name: str = "the choice") -> str:
    """The sentence about a row that is confirmed."""
    return f"{_figures(own, best, name)}. Confirmed."


def _figures(own: Validated, best: Validated, name: str = "the choice") -> str:
    told = f"{best.hours} {HOURS} and {best.cost} {unit(own.outcome)}"
    return f"On the held-out part, {name} has {told}, compared with the goals as they are"


def judged(table: Sequence[Validated], rule: Rule) -> list[Validated]:
    """The rows with their verdicts: all but the first, that of the goals as they are, are tested, and for how many they are is paid.

    *Source*: Holm 1979. Of m tests the surest has to be sure at 1/m of the level of one, the next at 1/(m - 1), and so on.
    """
    tested = ((chance(row, part), n, part) for n, row in enumerate(table[1:], 1) for part in rule.parts)
    tests = sorted(tested, key=lambda test: test[:2])
    level, verdicts, open_still = float(norm.sf(SURE)), dict.fromkeys(range(1, len(table)), "no gain beyond noise"), True
    for place, (least, n, part) in enumerate(tests):
        open_still = open_still and least <= level / (len(tests) - place)
        if not open_still:
            break
        verdicts[n] = f"{CONFIRMED}: fewer {part.words[0]} at equal {part.words[1]}"
    return [table[0], *(replace(row, verdict=verdicts[n]) for n, row in enumerate(table[1:], 1))]


def chance(row: Validated, rule: Rule) -> float:
    """Probability that chance alone gains as much, 1 where it is no gain or not at equal conditions."""
    gain = row.hours if rule.aim == "hours" else row.cost
    if doubt(row, rule) is not None or gain.error is None:
        return 1.0
    return float(norm.sf(-gain.share / gain.error)) if gain.error > 0.0 else 0.0


def instead(table: Sequence[Validated]) -> int | None:
    """The row that takes the place of a choice that is not confirmed: the first that is, in the order that was fixed before the held-out
    part was replayed. Not the one that gains most there: that would be by luck, too.

    *Source*: Wiens 2003 (the fallback procedure): the choice is tested by itself, and the rows at the same level once more, with Holm's
    correction. So chance alone leads to a recommendation with at most the level of a test for each aim and one more: 6.8% with both.
    """
    return next((n for n, row in enumerate(table) if row.verdict.startswith(CONFIRMED)), None)


def ceiling(tested: Sequence[Validated], rule: Rule) -> str:
    """How much less could be moved at most, as far as held-out stretches can tell: the best of all that were tested on them, which by
    chance looks a little better than it is."""
    others = f"the {_count(len(tested), 'other configuration')} tested on these stretches"
    equal = [row for row in tested if rule.is_equal(row.hours)]
    best = min(equal, key=lambda row: row.cost.share, default=None)
    if best is None or best.cost.share >= 0.0:
        return f"Of {others}, none moves less at equal {HOURS}."
    return f"Of {others}, the one that moves least at equal {HOURS} has {best.hours} {HOURS} and {best.cost} {unit(best.outcome)}."


def avoidable(own: Validated, best: Validated, never: Validated, hindsight: Validated) -> str:
    """What planning is worth here at all, and how much of what could be avoided the choice avoids."""
    before, none, least = (row.outcome.out_of_band_hours for row in (own, never, hindsight))
    told = f"{HOURS.capitalize()}: {none:,.0f} without any plan, {before:,.0f} with the goals as they are, {least:,.0f} with hindsight."
    chosen = best.outcome.out_of_band_hours
    if least >= before or chosen >= before:
        return told
    if chosen <= least:  # hindsight looks once a day, which is about the least
        return f"{told} The choice avoids at least as many of them as hindsight."
    return f"{told} The choice avoids {(before - chosen) / (before - least):.0%} of the hours that hindsight avoids."


def doubt(best: Validated, rule: Rule) -> str | None:
    """What keeps the held-out weeks from bearing the choice out; None where they do. With both aims, where they bear out one of them."""
    if len(rule.parts) > 1:
        found = [doubt(best, part) for part in rule.parts]
        return None if None in found else found[0 if best.hours.share < best.cost.share else 1]
    gain, kept = (best.hours, best.cost) if rule.aim == "hours" else (best.cost, best.hours)
    what, equal = rule.words
    if gain.share >= 0.0:
        return f"{what} are not fewer"
    if gain.error is None:
        return "one replay of one day cannot tell a gain from noise"
    if gain.share + SURE * gain.error >= 0.0:
        return f"the gain is less than {SURE:g} standard errors, so it may be noise"
    room = allowed(rule)
    if kept.share > room:
        return f"{equal} are more than {room:.1%} higher"
    if not rule.is_equal(kept, room - rule.equal):
        return f"{equal} are too uncertain to count as equal (at most {room + ROOM:.1%} more with a standard error added)"
    return None


def unit(outcome: Outcome) -> str:
    return "bytes moved" if outcome.bytes_moved > 0 else "replica moves"


def _count(number: int, noun: str, more: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else more}"


def tried(row: Validated, chosen: bool, own: Validated) -> Tried:
    """The row of the calibration file; `own` is that of the goals as they are."""
    c, o, before = row.trained.configuration, row.outcome, own.outcome
    return Tried(
        weights=dict(c.weights), bounds=dict(c.bounds), cadence=c.cadence, out_of_band_hours=o.out_of_band_hours,
        peak_utilization=o.peak_utilization, bytes_moved=o.bytes_moved, actions=o.actions, moved_back=o.moved_back,
        chosen=chosen, pareto=row.pareto, what=c.what, horizon=c.horizon, max_moves=c.max_moves, min_gain=c.min_gain, start=c.start,
        move_cost=c.move_cost,
        verdict=row.verdict,
        out_of_band_error=_amount(row.hours, before.out_of_band_hours) if row is not own else None,
        bytes_error=_amount(row.cost, before.bytes_moved) if row is not own else None,
    )  # fmt: skip


def _amount(found: Difference, before: float) -> float | None:
    return None if found.error is None or before <= 0.0 else found.error * before


def named(result: Result) -> Result:
    """The same with the chosen one called so."""
    words = "chosen" if result.confirmed else "choice, not confirmed"

    def call(row: Validated) -> Validated:
        c = row.trained.configuration
        return (
            replace(row, trained=replace(row.trained, configuration=replace(c, what=c.what or words)))
            if row.chosen
            else row
        )

    return replace(result, table=tuple(map(call, result.table)))
