"""A terminal picture of an execution on a real cluster: ``python -m tests.kafka.picture docs/images/execution.svg``.

What the commands said is drawn as it came; only the address of the cluster is replaced.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.kafka.cluster import KafkaCluster
from tests.kafka.executions import Executing, Verified
from tests.kafka.traffic import administering, create_topic, fill
from tests.kafka.watched import PATIENCE
from trimtab.execution.state import Partition

WIDTH = 118
ADDRESS = "broker1:9092"
TOPIC, LISTS, KILOBYTES = "orders", [[1, 3], [1, 4], [3, 1], [1, 3], [4, 1], [1, 4], [1, 3], [1, 4]], 8_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.picture", description=__doc__)
    parser.add_argument("out", type=Path, help="the SVG to write")
    out = parser.parse_args().out.resolve()
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="trimtab-picture-") as made, KafkaCluster() as cluster:
        folder = Path(made)
        with administering(cluster) as admin:
            create_topic(admin, TOPIC, LISTS, {"min.insync.replicas": "1"})
        fill(cluster.bootstrap, {(TOPIC, n): KILOBYTES for n in range(len(LISTS))}, 1000)
        (folder / "goals.yaml").write_text(
            "version: 1\ngoals:\n  - {kind: rack_aware, hard: true}\n  - {kind: usage_distribution, resource: replicas}\n"
            "  - {kind: usage_distribution, resource: disk}\nconstraints: {exclude_topics: ['__*']}\n"
        )
        at = ("--bootstrap-server", cluster.bootstrap, "--journal", str(folder / "journal"))
        with Verified(cluster, [Partition(TOPIC, n) for n in range(len(LISTS))], every=0.2):
            plan = ("plan", "--goals", "goals.yaml", "--interval", "5s", "--format", "json", "--out", "plan.json")
            _draw(console, cluster, plan, _said(folder, *plan, "--bootstrap-server", cluster.bootstrap))
            execute = ("execute", "--plan", "plan.json", "--throttle", "1MB/s", "--interval", "5s")
            running = Executing(cluster, folder, *execute, "--concurrency", "2", "--reserve", "0", "--out", "report.txt")
            running.hears("copied", PATIENCE)
            status = _said(folder, "status", *at)
            running.ends(PATIENCE)
            _draw(console, cluster, execute, "\n".join([*running.said, (folder / "report.txt").read_text().rstrip()]))
            _draw(console, cluster, ("status",), status, "meanwhile, from another machine")
    out.write_text(console.export_svg(title="trimtab execute", code_format=_without_fonts()))
    return 0


def _said(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "trimtab", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return (done.stderr + done.stdout).strip()


def _draw(console: Console, cluster: KafkaCluster, command: tuple[str, ...], said: str, note: str = "") -> None:
    words = " ".join((command[0], "--bootstrap-server", ADDRESS, *command[1:]))
    if note:
        console.print(Text(f"# {note}", style="bright_black"))
    console.print(Text(f"$ trimtab {words}", style="bold"))
    console.print(Text(said.replace(cluster.bootstrap, ADDRESS)))
    console.print()


def _without_fonts() -> str:
    """Rich's own form of a picture, which needs no font."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    before, _, rest = CONSOLE_SVG_FORMAT.partition("    @font-face")
    return before + rest[rest.index("    .{unique_id}-matrix") :]


if __name__ == "__main__":
    sys.exit(main())
