"""Executions that are disturbed in every way at several moments, on a real cluster under verified traffic.

``python -m tests.kafka.chaos`` runs the whole matrix and prints a line a case; ``--case NAME --moments 1`` a part of it. A short form
stands in `test_execution.py`. After each case: no acknowledged record is lost or out of order, every partition stands as planned or as
before, what was not done has a reason, and no throttle is left.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from metrics_reporter.reporter import SYSTEM_CLOCK
from tests.kafka.chaos_services import SERVICE_KINDS, run_services
from tests.kafka.cluster import FIRST_CONTROLLER, KafkaCluster, Listener
from tests.kafka.executions import Executing, Verified, leaders, looking, placed, plan_file, throttles, until
from tests.kafka.proxy import PROXIED
from tests.kafka.traffic import administering, create_topic, fill
from trimtab.capture.client import client_settings
from trimtab.execution.engine import SILENT_MS, Execution
from trimtab.execution.shared import SharedRecord
from trimtab.execution.state import Partition

SOURCE, TARGET, THIRD, FOURTH = 1, 2, 3, 4
BEFORE, AFTER = (SOURCE, THIRD, FOURTH), (TARGET, THIRD, FOURTH)
COUNT, KILOBYTES = 8, 1_500  # partitions, and of each
PACE = ("--throttle", "1MB/s", "--concurrency", "2", "--reserve", "0")
PATIENCE = 240.0
DISK_FULL, DISK = "disk-full", "128m"  # the case for which the target stands on a small disk of its own
DOWN_SECONDS = 12.0  # longer than a broker's session


@dataclass
class Case:
    """One execution that is disturbed once."""

    cluster: KafkaCluster
    admin: KafkaAdminClient
    topic: str
    folder: Path
    proxied: bool = False
    running: Executing | None = None
    code: int | None = None
    said: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[Partition]:
        return [Partition(self.topic, n) for n in range(COUNT)]

    def start(self) -> None:
        plan = plan_file(self.folder / "plan.json", self.cluster.cluster_id, dict.fromkeys(self.names, (BEFORE, AFTER)))
        listener = PROXIED if self.proxied else "PLAINTEXT"
        self.running = Executing(self.cluster, self.folder, "execute", "--plan", str(plan), *PACE, listener=listener)

    def reaches(self, done: int) -> None:
        """Until so many partitions stand as planned, and one is on its way where any is left."""

        with looking(self.cluster) as port:

            def there() -> bool:
                now = [p.replicas for n, p in port.look(()).partitions.items() if n.topic == self.topic]
                return sum(r == AFTER for r in now) >= done and (done == COUNT or any(len(r) > len(BEFORE) for r in now))

            if not until(there, PATIENCE, every=0.05):
                raise RuntimeError(f"{done} partitions were not reached: {self.now.said[-3:]}")

    @property
    def now(self) -> Executing:
        assert self.running is not None
        return self.running

    def ends(self) -> None:
        self.code = self.now.ends(PATIENCE)
        self.said += self.now.said

    def runs(self, verb: str, *more: str, folder: Path | None = None) -> None:
        other = Executing(self.cluster, folder or self.folder, verb, *more)
        self.code = other.ends(PATIENCE)
        self.said += other.said


def _executor_killed(case: Case) -> None:
    case.now.kill()
    case.runs("resume")


def _executor_killed_and_journal_lost(case: Case) -> None:
    case.now.kill()
    shutil.rmtree(case.folder / "journal")
    case.runs("resume")


def _killed_twice(case: Case) -> None:
    case.now.kill()
    case.running = Executing(case.cluster, case.folder, "resume")
    if not until(lambda: case.now.hears("partitions done", 0.1), PATIENCE):
        raise RuntimeError("the resumed execution did not start")
    case.now.kill()
    case.runs("resume")


def _broker_killed(broker: int) -> Callable[[Case], None]:
    def disturb(case: Case) -> None:
        case.cluster.kill_broker(broker)
        time.sleep(DOWN_SECONDS)  # the time that it is away is the disturbance
        case.cluster.start_broker(broker)
        case.ends()

    return disturb


def _cut_off(case: Case) -> None:
    """Until it has noticed; what is in progress goes on meanwhile."""
    case.cluster.cut()
    try:
        if not case.now.hears("looking again", PATIENCE):
            raise RuntimeError(f"it did not say that it is cut off: {case.now.said[-3:]}")
    finally:
        case.cluster.mend()
    case.ends()


def _cut_off_and_taken_over(case: Case) -> None:
    """Another machine goes on; the first is let in again, and takes no further step."""
    case.cluster.cut()
    try:
        if not case.now.hears("looking again", PATIENCE):
            raise RuntimeError(f"it did not say that it is cut off: {case.now.said[-3:]}")
        time.sleep(SILENT_MS / 1000)  # until then it may come back, and `resume` would only ask it
        case.runs("resume", folder=case.folder / "elsewhere")
        resumed = case.code
    finally:
        case.cluster.mend()
    case.ends()
    if case.code != 1 or not any("another instance" in line for line in case.said):
        raise RuntimeError(f"the instance that was cut off went on: {case.code}, {case.said[-2:]}")
    case.code = resumed


def _disk_full(case: Case) -> None:
    """Something else fills the disk of the target: its broker ends, and is started again once there is room."""
    folder = case.cluster.log_dirs(TARGET)[0]
    filler = folder / "filler"
    with filler.open("wb") as file, suppress(OSError):
        while True:
            file.write(b"." * 2**20)
            file.flush()
    if not until(lambda: case.cluster.has_ended(TARGET), PATIENCE):
        raise RuntimeError(f"broker {TARGET} goes on with a full disk")
    filler.unlink()
    case.cluster.kill_broker(TARGET)
    case.cluster.start_broker(TARGET)
    case.ends()


def _cancelled(case: Case) -> None:
    case.runs("cancel")
    case.ends()


def _finished(case: Case) -> None:
    case.runs("cancel", "--finish")
    case.ends()


def _rolled_back(case: Case) -> None:
    case.runs("rollback")
    case.ends()


def _killed_and_rolled_back(case: Case) -> None:
    case.now.kill()
    case.runs("rollback")


def _second_executor(case: Case) -> None:
    plan = plan_file(case.folder / "second.json", case.cluster.cluster_id, {case.names[0]: (AFTER, BEFORE)})
    case.runs("execute", "--plan", str(plan), folder=case.folder / "second")
    if case.code != 1 or not any("one at a time" in line for line in case.said):
        raise RuntimeError(f"a second execution was not refused: {case.code}, {case.said[-2:]}")
    case.ends()


def _deposed(case: Case) -> None:
    """Another instance takes over while the first stands still; when that goes on, it takes no further step."""
    case.now.send(signal.SIGSTOP)
    options = client_settings(None).options
    record = SharedRecord(case.cluster.bootstrap, options, case.cluster.cluster_id)
    try:
        with looking(case.cluster) as port:
            other = Execution(port, record, SYSTEM_CLOCK, instance="another machine process 1")
            other.adopt()
            other.turn()
            case.now.send(signal.SIGCONT)
            case.ends()
            if case.code != 1 or not any("another instance" in line for line in case.said):
                raise RuntimeError(f"the deposed instance went on: {case.code}, {case.said[-2:]}")
            if not until(lambda: other.turn().over, PATIENCE, every=1.0):
                raise RuntimeError("the instance that took over did not come to the end")
    finally:
        record.close()
    case.code = 0


def _topic_deleted(case: Case) -> None:
    case.admin.delete_topics([case.topic])
    case.ends()


def _partitions_added(case: Case) -> None:
    case.admin.create_partitions({case.topic: {"count": COUNT + 1, "assignments": [[THIRD, FOURTH, SOURCE]]}})
    case.ends()


def _another_tool_moves_one(case: Case) -> None:
    """The last partition goes elsewhere before its turn."""
    case.admin.alter_partition_reassignments({TopicPartition(case.topic, COUNT - 1): [THIRD, SOURCE, FOURTH]})
    case.ends()


def _another_tool_cancels(case: Case) -> None:
    with looking(case.cluster) as port:
        moving = [n for n, p in port.look(()).partitions.items() if n.topic == case.topic and p.reassigning]
    case.admin.alter_partition_reassignments(dict.fromkeys(TopicPartition(*n) for n in moving[:1]))
    case.ends()


PLANNED, BACK, EITHER, GONE = "planned", "back", "either", "gone"


@dataclass(frozen=True)
class Kind:
    """What happens, where it has to end (all as planned, all as before, each one or the other), and with which exit codes."""

    disturb: Callable[[Case], None]
    ends: str = PLANNED
    codes: tuple[int, ...] = (0,)
    proxied: bool = False
    late: bool = True  # whether it makes sense once every replica is in place


KINDS: Mapping[str, Kind] = {
    "executor-killed": Kind(_executor_killed),
    "executor-killed-twice": Kind(_killed_twice, late=False),
    "journal-lost": Kind(_executor_killed_and_journal_lost),
    "controller-killed": Kind(_broker_killed(FIRST_CONTROLLER)),
    "source-killed": Kind(_broker_killed(SOURCE)),
    "target-killed": Kind(_broker_killed(TARGET)),
    "bystander-killed": Kind(_broker_killed(5)),
    "cut-off": Kind(_cut_off, proxied=True, late=False),
    "cut-off-and-taken-over": Kind(_cut_off_and_taken_over, proxied=True, late=False),
    DISK_FULL: Kind(_disk_full),
    "cancelled": Kind(_cancelled, EITHER, (1,), late=False),
    "cancelled-finishing": Kind(_finished, EITHER, (0, 1), late=False),  # all may be in progress already
    "rolled-back": Kind(_rolled_back, BACK),
    "killed-and-rolled-back": Kind(_killed_and_rolled_back, BACK),
    "second-executor": Kind(_second_executor, late=False),
    "deposed": Kind(_deposed, late=False),
    "topic-deleted": Kind(_topic_deleted, GONE, (1,), late=False),
    "partitions-added": Kind(_partitions_added),
    "another-tool-moves": Kind(_another_tool_moves_one, EITHER, (1,), late=False),
    "another-tool-cancels": Kind(_another_tool_cancels, EITHER, (0, 1), late=False),  # before it was seen in progress it is asked for again
}
EVERY, USUAL = 0.2, 30.0  # seconds between records of a partition; seconds of traffic before an execution is measured
MOMENTS = (0, 2, 5, COUNT)  # partitions done when it happens; in the last one leaders are elected and throttles taken off


def run(cluster: KafkaCluster, name: str, done: int, folder: Path) -> list[str]:
    """One case; what was wrong after it, in sentences."""
    kind, topic = KINDS[name], f"chaos-{name}-{done}"
    folder.mkdir(parents=True, exist_ok=True)
    with administering(cluster) as admin:
        create_topic(admin, topic, [BEFORE] * COUNT, {"min.insync.replicas": "2"})
        fill(cluster.bootstrap, {(topic, n): KILOBYTES for n in range(COUNT)}, 1000)
        case = Case(cluster, admin, topic, folder, kind.proxied)
        wrong: list[str] = []
        with Verified(cluster, case.names, every=0.1) as traffic:
            case.start()
            try:
                case.reaches(done)
                if kind.ends == GONE:
                    traffic.stop()
                kind.disturb(case)
            except (RuntimeError, TimeoutError) as error:
                wrong.append(str(error))
            finally:
                if case.running is not None:
                    case.running.done()
        if kind.ends != GONE:
            wrong += traffic.faults() + traffic.failed[:3]
        wrong += _left(case, kind)
        if kind.ends != GONE:
            admin.delete_topics([topic])
    return wrong if not wrong else [*wrong, *case.said[-6:]]


def _left(case: Case, kind: Kind) -> list[str]:
    """What does not stand as it should; what another tool moves has come to its end."""
    with looking(case.cluster) as port:
        until(lambda: not any(p.reassigning for n, p in port.look(()).partitions.items() if n.topic == case.topic), PATIENCE)
    found = [] if case.code in kind.codes else [f"exit code {case.code}, expected {kind.codes}"]
    now = {n: r for n, r in placed(case.cluster, case.topic).items() if n.number < COUNT}
    last = (THIRD, SOURCE, FOURTH)
    allowed = {PLANNED: {AFTER}, BACK: {BEFORE}, EITHER: {BEFORE, AFTER, last, (THIRD, FOURTH, SOURCE)}, GONE: set()}[kind.ends]
    found += [f"{n} is on {list(r)}" for n, r in now.items() if r not in allowed]
    if kind.ends in (PLANNED, BACK):
        lead = (AFTER if kind.ends == PLANNED else BEFORE)[0]
        found += [f"{n} is led by {b}" for n, b in leaders(case.cluster, case.topic).items() if n.number < COUNT and b != lead]
    left = throttles(case.cluster, *([] if kind.ends == GONE else [case.topic]))
    found += [f"throttles are left: {json.dumps(left)}"] if left else []
    return found


def measure(cluster: KafkaCluster, count: int, folder: Path, after: tuple[int, ...], more: Sequence[str]) -> int:
    """Move so many partitions of 200 kB under traffic on twenty of them; times of producers before, meanwhile and afterwards."""
    topic, names = "measured", [Partition("measured", n) for n in range(count)]
    with administering(cluster) as admin:
        create_topic(admin, topic, [BEFORE] * count, {"min.insync.replicas": "2"})
        create_topic(admin, "warm", [BEFORE], {"min.insync.replicas": "2"})
    fill(cluster.bootstrap, {(topic, n): 200 for n in range(count)}, 1000)
    warm = plan_file(folder / "warm.json", cluster.cluster_id, {Partition("warm", 0): (BEFORE, AFTER)})
    plan = plan_file(folder / "plan.json", cluster.cluster_id, dict.fromkeys(names, (BEFORE, after)))
    with Verified(cluster, names[:: max(count // 20, 1)], every=EVERY) as traffic:
        # The first execution on a cluster makes topics and has brokers load classes for seconds.
        Executing(cluster, folder, "execute", "--plan", str(warm), "--throttle", "2MB/s", "--reserve", "0").ends(PATIENCE)
        usual = _span(traffic)
        began = time.monotonic()
        running = Executing(cluster, folder, "execute", "--plan", str(plan), "--throttle", "2MB/s", "--reserve", "0", *more)
        code, ended = running.ends(PATIENCE), time.monotonic()
        _span(traffic)
    wrong = traffic.faults() + traffic.failed + [f"{n} is on {list(r)}" for n, r in placed(cluster, topic).items() if r != after]
    left = throttles(cluster, topic)
    sys.stdout.write(
        f"{count} partitions in {ended - began:.0f} s, exit code {code}; milliseconds until acknowledged:\n"
        f"  before     {_times(traffic.seconds(*usual))}\n"
        f"  meanwhile  {_times(traffic.seconds(began, ended))}\n"
        f"{sum(traffic.acknowledged.values())} records verified, wrong: {wrong or 'nothing'}; throttles left: {left or 'none'}\n"
    )
    return 1 if wrong or left or code else 0


def _span(traffic: Verified) -> tuple[float, float]:
    """Some seconds of undisturbed traffic."""
    began = time.monotonic()
    until(lambda: time.monotonic() - began >= USUAL, PATIENCE)
    return began, time.monotonic()


def _times(seconds: Sequence[float]) -> str:
    """``p50 3, p99 41, p99.9 210, longest 250 (of 8,000 records)``."""
    shares = ", ".join(f"p{100 * share:g} {1000 * seconds[int(share * (len(seconds) - 1))]:.0f}" for share in (0.5, 0.99, 0.999))
    return f"{shares}, longest {1000 * seconds[-1]:.0f} (of {len(seconds):,} records)"


def _cluster(racks: Sequence[str], properties: Mapping[str, str]) -> KafkaCluster:
    return KafkaCluster(racks, properties=properties, listeners=[Listener(PROXIED, "PLAINTEXT", proxied=True)])


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """A small disk in memory at a folder; whether this machine lets us have one."""
    folder.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True, capture_output=True)
            shutil.rmtree(folder.parents[1], ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.chaos", description=__doc__)
    parser.add_argument("--case", choices=sorted([*KINDS, *SERVICE_KINDS]), action="append", help="only these; repeatable")
    parser.add_argument("--measure", type=int, metavar="N", help="instead: move N partitions undisturbed, and say what producers noticed")
    parser.add_argument("--followers", action="store_true", help="with --measure: leaders stay where they are")
    parser.add_argument("--more", metavar="OPTION", action="append", help="with --measure: one more word for `trimtab execute`; repeatable")
    parser.add_argument("--broker", metavar="KEY=VALUE", action="append", help="one more property of every broker; repeatable")
    parser.add_argument("--moments", type=int, default=len(MOMENTS), choices=range(1, len(MOMENTS) + 1), help="moments of each case")
    parser.add_argument("--at", type=int, choices=MOMENTS, action="append", help="instead: with so many partitions done; repeatable")
    asked = parser.parse_args()
    moments = asked.at or MOMENTS[: asked.moments]
    properties = dict(p.split("=", 1) for p in asked.broker or ())
    racks = ("r1", "r1", "r2", "r3", "r2")
    cases = asked.case or [*KINDS, *SERVICE_KINDS]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="trimtab-chaos-") as made:
        folder = Path(made)
        if asked.measure:
            with _cluster(racks, properties) as cluster:
                return measure(cluster, asked.measure, folder, (SOURCE, THIRD, TARGET) if asked.followers else AFTER, asked.more or ())
        ours = [name for name in cases if name in KINDS]
        if ours:
            cluster = _cluster(racks, properties)
            disk = _small_disk(cluster.log_dirs(TARGET)[0]) if DISK_FULL in ours else nullcontext(True)
            with disk as has_small_disk, cluster:
                if not has_small_disk:
                    sys.stdout.write(f"{DISK_FULL}: skipped, this machine mounts no tmpfs for us\n")
                    ours.remove(DISK_FULL)
                failed += _matrix(cluster, ours, moments, folder, run)
        theirs = [name for name in cases if name in SERVICE_KINDS]
        if theirs:
            with KafkaCluster(racks, properties=properties, controllers=3) as cluster:
                failed += _matrix(cluster, theirs, [m for m in moments if m < COUNT], folder, run_services)
    return 1 if failed else 0


def _matrix(
    cluster: KafkaCluster, cases: Sequence[str], moments: Sequence[int], folder: Path,
    run_case: Callable[[KafkaCluster, str, int, Path], list[str]],
) -> int:  # fmt: skip
    """How many of the cases went wrong; a line for each."""
    failed = 0
    for name in cases:
        for done in moments:
            if done == COUNT and not KINDS[name].late:
                continue
            began = time.monotonic()
            wrong = run_case(cluster, name, done, folder / f"{name}-{done}")
            failed += bool(wrong)
            verdict = "ok" if not wrong else "WRONG: " + "; ".join(wrong)
            sys.stdout.write(f"{name}, {done} of {COUNT} done: {verdict} ({time.monotonic() - began:.0f} s)\n")
            sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main())
