"""Which batches came already, so that none counts twice, and when each broker was last heard.

Owned by `cluster_model.model`. A reporter numbers its batches within an incarnation (its process), and may deliver one
twice, late, or after a younger one.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

REMEMBERED = 1024  # batches of an incarnation that may come late
INCARNATIONS = 3  # of a reporter that are told apart; older ones are taken for repeated
STRANGERS = 4096  # brokers that the metadata does not have, whose batches are remembered
_ALL = (1 << REMEMBERED) - 1


@dataclass(slots=True)
class _Numbers:
    """Sequence numbers that came: `newest`, and bit i of `came` for ``newest - i``."""

    newest: int
    came: int = 1

    def take(self, sequence: int) -> bool:
        ahead = sequence - self.newest
        if ahead > 0:
            self.came = ((self.came << ahead) & _ALL if ahead < REMEMBERED else 0) | 1
            self.newest = sequence
            return True
        if -ahead >= REMEMBERED or self.came >> -ahead & 1:
            return False
        self.came |= 1 << -ahead
        return True


@dataclass(slots=True)
class Heard:
    """When a broker was last heard, Unix ms.

    Attributes
    ----------
    newest_ms
        End of the newest interval that it reported, by its clock, never later than the arrival.
    arrived_ms
        When its newest batch arrived, by the model's clock.
    """

    newest_ms: int
    arrived_ms: int
    _incarnations: dict[int, _Numbers] = field(default_factory=dict)

    def take(self, incarnation: int, sequence: int) -> bool:
        numbers = self._incarnations.get(incarnation)
        if numbers is not None:
            return numbers.take(sequence)
        if len(self._incarnations) == INCARNATIONS:
            oldest = min(self._incarnations)
            if incarnation < oldest:
                return False
            del self._incarnations[oldest]
        self._incarnations[incarnation] = _Numbers(sequence)
        return True


class Deliveries:
    """Brokers by wire id; about 300 bytes and `REMEMBERED` bits for each incarnation."""

    def __init__(self) -> None:
        self.of: dict[int, Heard] = {}

    def take(self, broker: int, incarnation: int, sequence: int, time_ms: int, now_ms: int) -> bool:
        """Note a batch; False where it came before, or may have."""
        heard = self.of.get(broker)
        newest_ms = min(time_ms, now_ms)
        if heard is None:
            heard = self.of[broker] = Heard(newest_ms, now_ms)
        if not heard.take(incarnation, sequence):
            return False
        heard.newest_ms = max(heard.newest_ms, newest_ms)
        heard.arrived_ms = max(heard.arrived_ms, now_ms)
        return True

    def prune(self, registered: Container[int]) -> None:
        """Of brokers that are not registered, remember only those heard last."""
        strangers = sorted((h.arrived_ms, b) for b, h in self.of.items() if b not in registered)
        for _, broker in strangers[: max(0, len(strangers) - STRANGERS)]:
            del self.of[broker]
