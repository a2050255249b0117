"""What a plan leads to at every broker: loads and scores before and after, what it would still violate, and why.

Called by `assemble`. Reads states, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import overload

import numpy as np

from cluster_model.resources import MEASURED
from cluster_model.snapshot import BrokerState, FloatArray, Snapshot
from optimizer.outcome import Picture, judged
from optimizer.placement.state import State
from optimizer.plan import BrokerOutcome
from optimizer.problem import STATE, Compiled
from optimizer.why import Left


class BrokerOutcomes(Sequence[BrokerOutcome]):
    """Every broker: loads of all known resources before and after, scores, what it still violates and why; built when looked at."""

    def __init__(self, snapshot: Snapshot, compiled: Compiled, start: Picture, end: State, left: dict[int, Left]) -> None:
        self._names = [goal.name for goal in compiled.goals]
        self._judges = np.zeros((snapshot.broker_count, len(self._names)), np.bool_)
        for g in range(len(self._names)):
            self._judges[judged(compiled, g), g] = True
        self._ids, self._racks, self._states = snapshot.broker_ids, snapshot.racks, compiled.problem.broker[:, STATE]
        self._before, self._after = _loads(snapshot, compiled, start), _loads(snapshot, compiled, end)
        self._scores, self._scores_after = start.score, end.score.copy()  # the state goes on
        self._left = left

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> BrokerOutcome: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[BrokerOutcome]: ...
    def __getitem__(self, index: int | slice) -> BrokerOutcome | Sequence[BrokerOutcome]:
        return self._built[index]

    @cached_property
    def _built(self) -> tuple[BrokerOutcome, ...]:
        names = self._names
        by_all = np.asarray(self._judges.all(axis=1)).tolist()
        labels = {int(state): state.label for state in BrokerState}
        columns = (
            self._ids.tolist(), self._racks, self._states.tolist(), _by_row(self._before), _by_row(self._after),
            self._scores[:, : len(names)].tolist(), self._scores_after[:, : len(names)].tolist(),
        )  # fmt: skip
        result = []
        for row, (broker, rack, state, loads, loads_after, scores, scores_after) in enumerate(zip(*columns, strict=True)):
            by = range(len(names)) if by_all[row] else np.flatnonzero(self._judges[row]).tolist()
            violates = tuple([names[g] for g in by if scores_after[g] < 1.0])
            result.append(
                BrokerOutcome(
                    id=broker,
                    rack=rack,
                    state=labels[state],
                    before=dict(zip(self._before, loads, strict=True)),
                    after=dict(zip(self._after, loads_after, strict=True)),
                    scores_before={names[g]: scores[g] for g in by},
                    scores_after={names[g]: scores_after[g] for g in by},
                    violates=violates,
                    why=_why(self._left, row, violates),
                )
            )
        return tuple(result)


def _by_row(loads: dict[str, FloatArray]) -> list[list[float]]:
    """Of each broker, its loads in the order of `loads`."""
    rows: list[list[float]] = np.stack(list(loads.values()), axis=1).tolist()
    return rows


def _why(left: dict[int, Left], row: int, violates: tuple[str, ...]) -> str | None:
    found = left.get(row)
    return found.text if found is not None and (violates or found.always) else None


def _loads(snapshot: Snapshot, compiled: Compiled, state: State | Picture) -> dict[str, FloatArray]:
    """resource -> float64 [B] for every measured resource that is known, and every derived one a goal uses, and counts."""
    names = [r for r in MEASURED if snapshot.is_reported(r)]
    names += [r for r in ("replicas", "leaders", *compiled.columns) if r not in names]
    known = {name: state.load[:, c].copy() for c, name in enumerate(compiled.columns)}
    if any(name not in known for name in names):
        lead = state.lead
        leaders = np.where(lead >= 0, state.replicas[np.arange(len(lead)), np.maximum(lead, 0)], -1).astype(np.int32)
        snapshot = snapshot.with_placement(state.replicas.astype(np.int32), leaders)
    return {name: known[name] if name in known else snapshot.broker_load(name) for name in dict.fromkeys(names)}
