"""CPU, network and disks of the host that the broker runs on, by psutil.

What Kafka counts itself goes before these; the host's capacities have no other source.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import psutil

from metrics_reporter.reading import CPU_SECONDS, NIC_IN, NIC_OUT, CollectError, Counters, Reading

LOOPBACK = ("lo", "lo0")
MEGABIT = 125_000  # bytes
QUOTA = Path("/sys/fs/cgroup/cpu.max")


class HostCollector:
    """Reads the host, or the container, that this process runs in.

    Parameters
    ----------
    log_dirs
        The broker's log directories; the disks under them are its capacity. None: disks are not read.
    interfaces
        Network interfaces that the broker's traffic goes through; empty means all but the loopback.
    pid_file
        File with the process id of the broker; its CPU is read then, the host's as a whole otherwise.
    quota
        Where the kernel states how much CPU this control group may use.
    """

    name = "host"

    def __init__(
        self,
        *,
        log_dirs: Sequence[Path] = (),
        interfaces: Sequence[str] = (),
        pid_file: Path | None = None,
        quota: Path = QUOTA,
    ) -> None:
        self._log_dirs, self._interfaces, self._pid_file = tuple(log_dirs), tuple(interfaces), pid_file
        self._quota = quota

    def collect(self) -> Reading:
        """Counters and capacities of the host, as `metrics_reporter.reading.Collector` has it."""
        try:
            received, sent, speed = self._network()
            cpu, epoch = self._cpu()
            used, total = self._disks()
        except (psutil.Error, OSError, ValueError) as error:
            raise CollectError(f"the host's metrics cannot be read: {error}") from error
        counted = {NIC_IN: received, NIC_OUT: sent, CPU_SECONDS: cpu}
        capacity = {"cpu": self._cores(), "disk": total, "network_in": speed, "network_out": speed}
        return Reading(
            counters=Counters(epoch, {k: v for k, v in counted.items() if v is not None}),
            capacity={metric: value for metric, value in capacity.items() if value},
            disk=used,
        )

    def close(self) -> None:
        """Nothing is kept open."""

    def _network(self) -> tuple[float | None, float | None, float | None]:
        """Bytes received and sent by the chosen interfaces, and what they carry a second where they say it."""
        counters, states = psutil.net_io_counters(pernic=True), psutil.net_if_stats()
        missing = [name for name in self._interfaces if name not in counters]
        if missing:
            raise ValueError(f"there is no network interface {', '.join(missing)}; found {', '.join(sorted(counters))}")
        chosen = self._interfaces or [n for n in counters if n not in LOOPBACK and (n not in states or states[n].isup)]
        if not chosen:
            return None, None, None
        speed = sum(states[name].speed for name in chosen if name in states) * MEGABIT
        received = float(sum(counters[name].bytes_recv for name in chosen))
        return received, float(sum(counters[name].bytes_sent for name in chosen)), float(speed) or None

    def _cpu(self) -> tuple[float, float]:
        """CPU seconds of the broker or the host, and since when they are counted."""
        if self._pid_file is not None:
            text = self._pid_file.read_text(encoding="ascii").strip()
            if not text.isdecimal():
                raise ValueError(f"expected a process id in {self._pid_file}, found {text[:40]!r}")
            process = psutil.Process(int(text))
            times = process.cpu_times()
            return times.user + times.system, process.create_time()
        busy = psutil.cpu_times()
        # Guests are in user and nice already.
        idle = {"idle", "iowait", "steal", "guest", "guest_nice"}
        return float(sum(v for k, v in busy._asdict().items() if k not in idle)), psutil.boot_time()

    def _cores(self) -> float:
        """Cores that may be used: the machine's, or fewer where a control group limits them."""
        cores = float(len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else float(psutil.cpu_count() or 0)
        try:
            quota, period = self._quota.read_text(encoding="ascii").split()
            return cores if quota == "max" else min(cores, int(quota) / int(period))
        except (OSError, ValueError, ZeroDivisionError):
            return cores

    def _disks(self) -> tuple[float | None, float | None]:
        """Used and total bytes of the file systems under the log directories, each once."""
        if not self._log_dirs:
            return None, None
        systems = {path.stat().st_dev: path for path in self._log_dirs}
        usages = [psutil.disk_usage(str(path)) for path in systems.values()]
        return float(sum(u.used for u in usages)), float(sum(u.total for u in usages))
