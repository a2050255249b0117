"""What can be made to go wrong in a simulated cluster, at any moment and until it is mended."""

from __future__ import annotations

from dataclasses import dataclass, field

from trimtab.simulator.controller import Controller
from trimtab.simulator.spec import ErrorCode, Refusal, TopicPartition


@dataclass(eq=False)
class Faults:
    """Faults of one cluster; brokers by wire id."""

    _controller: Controller
    _now_ms: int = 0
    lost_reporters: set[int] = field(default_factory=set)
    latencies: dict[int, dict[str, float]] = field(default_factory=dict)  # metric -> ms that a broker's reporter tells
    _refusals: list[tuple[TopicPartition | None, ErrorCode]] = field(default_factory=list)

    def kill(self, broker: int) -> None:
        """Stop a broker at once; the controller notices when its session ends."""
        row = self._row(broker)
        brokers = self._controller.brokers
        if brokers.up[row]:
            brokers.up[row] = False
            brokers.down_since_ms[row] = self._now_ms
            logs = self._controller.logs
            logs.role[logs.host == row] += 1  # its counters start again

    def restart(self, broker: int) -> None:
        """Start a stopped broker again, with all that was on its disk."""
        self._controller.brokers.up[self._row(broker)] = True

    def slow_network(self, broker: int, factor: float) -> None:
        """Leave a share of a broker's bandwidth; 1 mends it."""
        self._controller.brokers.slow_network[self._row(broker)] = factor

    def slow_disk(self, broker: int, factor: float) -> None:
        """Leave a share of a broker's disk write rate; 1 mends it."""
        self._controller.brokers.slow_disk[self._row(broker)] = factor

    def lose_reporter(self, broker: int) -> None:
        """The broker serves, its reporter sends nothing."""
        self.lost_reporters.add(broker)

    def restore_reporter(self, broker: int) -> None:
        self.lost_reporters.discard(broker)

    def stall(self, name: TopicPartition, broker: int, *, stalled: bool = True) -> None:
        """A replica on a broker copies nothing until `stalled` is False."""
        entry = self._controller.partitions[name]
        self._controller.logs.stalled[entry.row, entry.place[broker]] = stalled

    def refuse_next(self, code: ErrorCode, name: TopicPartition | None = None) -> None:
        """The next reassignment of a partition (None: of any) is refused with `code`, once."""
        self._refusals.append((name, code))

    def refusal_of(self, name: TopicPartition) -> Refusal | None:
        """Take the refusal that waits for a partition, if any."""
        for index, (wanted, code) in enumerate(self._refusals):
            if wanted is None or wanted == name:
                del self._refusals[index]
                return Refusal(code, f"{name}: refused by an injected fault")
        return None

    def at(self, now_ms: int) -> None:
        """Faults injected from now on happen at this time."""
        self._now_ms = now_ms

    def _row(self, broker: int) -> int:
        row = self._controller.row_of(broker)
        if row is None:
            raise ValueError(f"there is no broker {broker}")
        return row
