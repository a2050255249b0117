"""Lists put right without a compiler: replicas that go home, and slots that are those they were."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from goals.score import TOLERANCE
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MIN_LOAD,
    STATE,
    Problem,
)
from optimizer.search.state import COST, State
from optimizer.search.uncompiled.changes import commit
from optimizer.search.uncompiled.partitions import may_host
from optimizer.search.uncompiled.sheets import Sheet, sheet_of

Edges = list[tuple[int, float, float, float, float]]
PASSES = 3
PART = 256  # partitions that are looked at in one go


def send_home(problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, order: np.ndarray) -> int:
    """`optimizer.search.homeward.send_home`."""
    sheet = sheet_of(problem)
    known: dict[int, Edges] = {}  # of brokers that no commit has touched since
    touched: set[int] = set()  # brokers, since partitions were looked at last
    done = 0
    for _ in range(PASSES):
        away = order[(state.replicas[order] != home[order]).any(axis=1) | (state.lead[order] != home_lead[order])]
        taken = 0
        for p, was, lead, mine, want in _promising(problem, state, touched, away, home, home_lead):
            vectors: list[list[float]] = problem.vector[p].tolist()
            for s, back in enumerate(mine):
                if back < 0 or back == was[s] or sheet.state[back] != 0:
                    continue
                held = vectors[LEADING if lead == s else FOLLOWING]
                if _leaves(sheet, state, known, was[s], None, held):
                    continue
                if _leaves(sheet, state, known, back, vectors[LEADING] if want == s else held, None):
                    continue
                if not may_host(problem, state, p, s, back):
                    continue
                row = was.copy()
                row[s] = back
                leader = s if want == s else lead
                brokers = [was[s], back] if leader == lead else [was[s], back, was[lead]]
                if _tried(problem, state, known, touched, p, s, row, leader, brokers):
                    was, lead = row, leader
                    taken += 1
            if want < 0 or want == lead or lead < 0 or mine[want] != was[want] or sheet.state[was[want]] != 0:
                continue
            if not _leaves(sheet, state, known, was[want], vectors[LEADING], vectors[FOLLOWING]):
                taken += _tried(problem, state, known, touched, p, len(was), was, want, [was[want], was[lead]])
        done += taken
        if taken == 0:
            break
    return done


def _promising(
    problem: Problem, state: State, touched: set[int], away: np.ndarray, home: np.ndarray, home_lead: np.ndarray
) -> Iterator[tuple[int, list[int], int, list[int], int]]:  # fmt: skip
    """Of the partitions `away`, in turn, those of which a replica or the leadership may go home as far as bands of brokers are concerned:
    partition, brokers, leader, home of each. Commits put the brokers that they touch meanwhile into `touched`."""
    bands = Bands(problem)
    for first in range(0, len(away), PART):
        rows = away[first : first + PART]
        was, mine, lead, want = state.replicas[rows], home[rows], state.lead[rows], home_lead[rows]
        bands.observe(state)
        may = _may_go(problem, state, bands, rows, was, mine, lead, want)
        touched.clear()
        for p, brokers, leader, back, to, fine in zip(
            rows.tolist(), was.tolist(), lead.tolist(), mine.tolist(), want.tolist(), may.tolist(), strict=True
        ):
            if fine or (touched and not (touched.isdisjoint(brokers) and touched.isdisjoint(back))):
                yield p, brokers, leader, back, to


def _may_go(
    problem: Problem, state: State, bands: Bands, rows: np.ndarray, was: np.ndarray, mine: np.ndarray, lead: np.ndarray,
    want: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """bool [n]: whether `leaves_band` lets some replica of partitions `rows` go home, or the leadership go over at home."""
    spots = np.arange(was.shape[1])
    able = (mine >= 0) & (problem.broker[mine, STATE] == 0)
    i, s = np.nonzero(able & (mine != was))
    led = lead[i] == s
    held = problem.vector[rows[i], np.where(led, LEADING, FOLLOWING)]
    come = problem.vector[rows[i], np.where(led | (want[i] == s), LEADING, FOLLOWING)]
    stays = bands.left(state, was[i, s], 0.0, held) | bands.left(state, mine[i, s], come, 0.0)
    may = np.zeros(len(rows), np.bool_)
    may[i[~stays]] = True
    k = np.flatnonzero((want >= 0) & (want != lead) & (lead >= 0))
    k = k[((mine == was) & able & (spots == want[:, None]))[k].any(axis=1)]
    both = problem.vector[rows[k]]
    may[k[~bands.left(state, was[k, want[k]], both[:, LEADING], both[:, FOLLOWING])]] = True
    return may


class Bands:
    """Loads at which `optimizer.search.homeward.leaves_band` lets brokers be, by the W goals on loads."""

    def __init__(self, problem: Problem) -> None:
        self._linear = np.flatnonzero(problem.goal[:, KIND] <= LIMIT)
        self._columns = problem.goal[self._linear, COLUMN]
        table, limited = problem.table[:, self._linear], problem.goal[self._linear, KIND] == LIMIT
        mean = table[:, :, MEAN]
        self._mean = np.where(limited, 0.0, mean)
        edge = np.where(limited, table[:, :, CEILING], np.where(mean > 0.0, table[:, :, BOUND] * (1.0 + TOLERANCE), np.inf))
        self._edge = np.where((problem.broker[:, STATE] == 0)[:, None], edge, np.inf)
        self._least = np.where(limited, -np.inf, problem.force[self._linear, MIN_LOAD])
        self._now = self._edge

    def observe(self, state: State) -> None:
        """Scores are as they are now: goals in which a broker is out do not count."""
        self._now = np.where(state.score[:, self._linear] >= 1.0, self._edge, np.inf)

    def left(self, state: State, brokers: np.ndarray, come: np.ndarray | float, gone: np.ndarray | float) -> np.ndarray:
        """bool [n]: whether each of `brokers` int64 [n] would leave one, with loads float64 [n, C] more and less."""
        load = (state.load[brokers] + come - gone)[:, self._columns]
        away = np.abs(load - self._mean[brokers]) > self._now[brokers]
        away &= load > self._least
        return np.asarray(away.any(axis=1))


def _tried(
    problem: Problem, state: State, known: dict[int, Edges], touched: set[int], p: int, s: int, row: list[int], lead: int,
    brokers: list[int],
) -> bool:  # fmt: skip
    """Commit `p` at `row`, led by `lead`, unless `brokers` are worse for it; those are `known` no more, and `touched`."""
    from optimizer.search.homeward import misplaces

    to = np.array(row, np.int64)
    if len(problem.topic_goal) and misplaces(problem, state, p, s, to, lead):
        return False
    was, led = state.replicas[p].copy(), int(state.lead[p])
    before = state.score[brokers, :COST]
    commit(problem, state, p, to, lead)
    holds = not (state.score[brokers, :COST] < before - 1e-12).any()
    if holds:
        touched.update(brokers)
        for b in brokers:
            known.pop(b, None)
    else:
        commit(problem, state, p, was, led)
    return holds


def _leaves(
    sheet: Sheet, state: State, known: dict[int, Edges], b: int, come: list[float] | None, gone: list[float] | None
) -> bool:
    """`optimizer.search.homeward.leaves_band`."""
    edges = known.get(b)
    if edges is None:
        edges = known[b] = _edges(sheet, b, state.load[b].tolist(), state.score[b].tolist())
    for c, load, mean, edge, least in edges:
        if come is not None:
            load += come[c]
        if gone is not None:
            load -= gone[c]
        away = load - mean
        if (away > edge or -away > edge) and load > least:
            return True
    return False


def _edges(sheet: Sheet, b: int, loads: list[float], scores: list[float]) -> Edges:
    """Column, load, and how far from where it may be, above which load, in each goal on loads in which broker `b` scores 1."""
    edges: Edges = []
    if sheet.state[b] != 0:
        return edges
    for goal, force, row, score in zip(sheet.goal, sheet.force, sheet.table(b), scores, strict=False):
        c = goal[COLUMN]
        if goal[KIND] > LIMIT or score < 1.0:
            continue
        if goal[KIND] == LIMIT:  # more than 0 away from 0, and above the ceiling
            edges.append((c, loads[c], 0.0, 0.0, row[CEILING]))
        elif row[MEAN] > 0.0:
            edges.append((c, loads[c], row[MEAN], row[BOUND] * (1.0 + TOLERANCE), force[MIN_LOAD]))
    return edges


def align_slots(problem: Problem, state: State, home: np.ndarray, partitions: np.ndarray) -> None:
    """`optimizer.search.align.align_slots`."""
    partitions = partitions[(state.replicas[partitions] != home[partitions]).any(axis=1)]
    for p, old, mine, lead in zip(
        partitions.tolist(), state.replicas[partitions].tolist(), home[partitions].tolist(), state.lead[partitions].tolist(), strict=True
    ):  # fmt: skip
        others = [b for b in old if b >= 0 and b not in mine]
        row = [b if b in old else -2 for b in mine]
        for b in others:
            row[row.index(-2)] = b
        if row != old:
            leader = old[lead] if lead >= 0 else -1
            to = max((s for s, b in enumerate(row) if b == leader), default=-1) if leader >= 0 else -1
            commit(problem, state, p, np.array(row, np.int64), to)
