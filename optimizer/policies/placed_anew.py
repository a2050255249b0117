"""A plan that gives the partitions of topics the places that a placement would have given them, where Kafka or a person chose others.

Called by `trimtab assign` for a topic that exists, and by the service for topics that were created just now, while a move still copies
next to nothing. Pure. What the placement decides is how many replicas of the topic a broker gets; these counts are reached with the
fewest moves, and leaders are levelled by the order of lists. Where that does not lead there (racks, or more than the moves allow),
partitions get the placement's own lists, each the one that it has most of already. A topic that stands so is not touched. Source: ours;
Danube and Pulsar place topics themselves, Kafka takes the next brokers in turn.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from scipy.optimize import linear_sum_assignment

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.snapshot import BoolArray, FloatArray, Snapshot
from goals.model import GoalSet
from goals.policy import Placement
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.policies.assign import InfeasibleError, Work
from optimizer.policies.board import Board, Rows, Step
from optimizer.policies.counts import Placement as Standing
from optimizer.policies.counts import count_moves
from optimizer.policies.leaders import UNTOUCHED, Led, level_leaders
from optimizer.policies.placements import Dice
from optimizer.policies.recording import plan_of
from optimizer.problem import MOVABLE
from optimizer.whatif import apply_whatifs, no_topic

MOST_MATCHED = 2_000  # partitions of a topic whose lists are matched; beyond, each keeps the list of its turn
ONE_THERE = "give the name of one that is there, or leave --existing out for a new topic"
NOTE = "the plan moves partitions to the brokers that placement {} chooses, and does nothing else"
ALONE = "this plan places some topics and does nothing else; a plan of the whole cluster may fix it"


def placed_anew(
    snapshot: Snapshot, goals: GoalSet, topics: Collection[str], placement: Placement | None = None, score: str = "count",
    options: PlanOptions | None = None,
) -> Plan:  # fmt: skip
    """The plan that places the partitions of `topics` as if they were created now; deterministic in all its arguments.

    Raises
    ------
    ConfigurationError
        A topic that is not there, or the options do not fit the snapshot.

    Notes
    -----
    Topics that are excluded or frozen, and those for whose replicas hard goals leave no place, stay as they are, and the notes say so.
    Budgets hold topic by topic. O(partitions of the topics x replicas of the cluster).
    """
    options, by = options or PlanOptions(), placement or Placement(kind="least")
    unknown = sorted(set(topics) - snapshot.row_of_topic.keys())
    if unknown:
        raise ConfigurationError("topics", [Problem("--topic", no_topic(snapshot, name, ONE_THERE)) for name in unknown])
    imagined = apply_whatifs(snapshot, goals, options)
    board = Board.of(imagined, compile_problem(imagined, goals, options))
    notes = [NOTE.format(by.kind)]
    for topic in sorted(set(topics)):
        rows = np.flatnonzero(imagined.partition_topic == imagined.row_of_topic[topic])
        stays = _why_not(board, rows)
        steps: list[Step] = []
        if not stays:
            factor = int(imagined.replication_factor[rows[0]])
            try:
                work = Work(_with_none(board, rows), goals, rows.tolist(), factor, by, score, Dice(options.seed))
                wanted = work.placed()
                steps = _steps(board, rows, _counted(board, rows, wanted, work.allowed()) or _matched(board, rows, wanted), by.kind)
            except InfeasibleError as error:
                stays = str(error)
        if _beyond(board, [*board.steps, *steps], options):
            stays = "a budget is used up"
        if stays:
            notes.append(f"topic {topic} stays as it is: {stays}")
            continue
        for step in steps:
            board.make(step)
    recorded: dict[str, object] = {"places": sorted(set(topics)), "placement": by.kind, "score": score}
    return plan_of(snapshot, board, goals, options, recorded, notes, because=ALONE)


def _why_not(board: Board, rows: Rows) -> str:
    """Why the partitions `rows` of a topic are left alone; empty where they are not."""
    if not (board.compiled.problem.partition[rows, MOVABLE] == 1).all():
        return "it is excluded or frozen"
    if board.compiled.caution is not None and board.compiled.caution.resting[rows].any():
        return "partitions of it were moved lately"
    if (board.leaders[rows] < 0).any():
        return "partitions of it have no leader to copy from"
    if len(set(board.snapshot.replication_factor[rows].tolist())) > 1:
        return "its partitions have unlike numbers of replicas"
    return ""


def _with_none(board: Board, rows: Rows) -> Snapshot:
    """The cluster as it would stand without the replicas of partitions `rows`."""
    now = board.now()
    lists, leader = now.replicas.copy(), now.leader.copy()
    lists[rows], leader[rows] = -1, -1
    return now.with_placement(lists, leader)


def _counted(board: Board, rows: Rows, wanted: list[list[int]], allowed: BoolArray) -> list[list[int]] | None:
    """Lists, leaders first, by which every broker holds as many replicas as in `wanted`; None where moves do not lead there. `allowed`
    bool [B] are the brokers that may hold any."""
    brokers = len(board.active)
    target = np.bincount(np.array(wanted).ravel(), minlength=brokers)
    lists, per_rack = board.lists[rows].copy(), board.per_rack[rows]
    rack = board.rack
    if rack is not None and any(np.bincount(rack[row[row >= 0]]).max() > most for row, most in zip(lists, per_rack, strict=True)):
        return None
    every, size = np.ones(len(rows), np.bool_), board.compiled.problem.size[rows].astype(np.float64)
    for _ in range(lists.shape[1]):  # each time one broker of a partition at most
        standing = Standing(lists.copy(), every, board.active & allowed, board.leaving | ~allowed, board.rack, per_rack, size)
        if np.array_equal(standing.counts, target):
            break
        found = count_moves(standing, target)
        if not len(found.partition):
            return None
        lists[found.partition, found.slot] = found.target
    else:
        return None
    leads = np.append(board.active, False)[lists] & (lists >= 0)
    lead = np.where(leads.any(axis=1), leads.argmax(axis=1), 0)
    kept = lists == board.leaders[rows][:, None]
    lead = np.where((kept & leads).any(axis=1), kept.argmax(axis=1), lead)
    lead = level_leaders(Led(lists, lead, every, board.active, np.full(len(rows), UNTOUCHED)))
    rows_of = zip([row[row >= 0].tolist() for row in lists], lead.tolist(), strict=True)
    return [[row[first], *row[:first], *row[first + 1 :]] for row, first in rows_of]


def _matched(board: Board, rows: Rows, wanted: list[list[int]]) -> list[list[int]]:
    """The lists, each at the partition to which it brings fewest new replicas, then fewest other leaders."""
    if len(rows) > MOST_MATCHED:
        return wanted
    cost = np.zeros((len(rows), len(wanted)))
    new = np.array(wanted)
    for i, p in enumerate(rows.tolist()):
        has = board.lists[p][board.lists[p] >= 0]
        cost[i] = 2.0 * (~np.isin(new, has)).sum(axis=1) + (new[:, 0] != board.leaders[p])
    _, chosen = linear_sum_assignment(cost)
    return [wanted[j] for j in chosen.tolist()]


def _steps(board: Board, rows: Rows, wanted: list[list[int]], placement: str) -> list[Step]:
    """Replicas that stay keep their slots; others come into those that are free."""
    steps = []
    for p, target in zip(rows.tolist(), wanted, strict=True):
        old = board.lists[p].tolist()
        come = [b for b in target if b not in old]
        new = [b if b in target else come.pop(0) for b in old[: len(target)]] + old[len(target) :]
        lead = new.index(target[0])
        if new != old or lead != board.lead[p]:
            names = ", ".join(str(board.snapshot.broker_ids[b]) for b in target)
            reason = f"placement {placement} has {board.snapshot.partition_name(p)} on brokers {names}"
            steps.append(Step((p,), (tuple(new),), (lead,), reason))
    return steps


def _beyond(board: Board, steps: list[Step], options: PlanOptions) -> bool:
    """Whether steps go beyond a budget."""
    start: Rows = board.compiled.replicas
    moves = {s.partitions[0]: len(set(s.lists[0]) - set(start[s.partitions[0]].tolist())) for s in steps}
    size: FloatArray = board.compiled.problem.size
    spent = (sum(moves.values()), sum(n * float(size[p]) for p, n in moves.items()), len(moves))
    limits = (options.max_moves, options.max_bytes, options.max_partitions)
    return any(limit is not None and used > limit for used, limit in zip(spent, limits, strict=True))
