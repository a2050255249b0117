"""Two instances that think they stand beside the same controller are kept apart, however they came to think so."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from trimtab.service.claim import Claim


def test_a_place_is_one_instances_until_it_ends() -> None:
    cluster = uuid4().hex
    one, other = Claim(cluster, 100, None), Claim(cluster, 100, None)
    assert one.refused() is None
    assert one.refused() is None, "it keeps what it has"
    assert (other.refused() or "").startswith("Another instance on this machine stands beside node 100 of this cluster already")
    assert Claim(cluster, 101, None).refused() is None, "the instance beside another controller of this machine"
    assert Claim(uuid4().hex, 100, None).refused() is None, "a node of another cluster"
    one.close()
    assert other.refused() is None
    other.close()


def test_two_that_always_decide_are_kept_apart_too() -> None:
    cluster = uuid4().hex
    one, other = Claim(cluster, None, None), Claim(cluster, None, None)
    assert one.refused() is None
    assert "decides for this cluster already" in (other.refused() or "")
    one.close()
    other.close()


def test_one_that_reads_the_same_metadata_log_is_noticed_from_another_container(tmp_path: Path) -> None:
    """There the names of this machine are others; two names stand in for two containers."""
    one, other = Claim(uuid4().hex, 100, tmp_path), Claim(uuid4().hex, 100, tmp_path)
    assert one.refused() is None
    assert f"Another instance reads {tmp_path} already" in (other.refused() or "")
    one.close()
    assert other.refused() is None
    other.close()
    assert list(tmp_path.iterdir()) == [], "Kafka's folder is as it was"


def test_a_place_ends_with_its_process_also_by_kill_9(tmp_path: Path) -> None:
    cluster = uuid4().hex
    code = (
        f"from pathlib import Path\nfrom trimtab.service.claim import Claim\nclaim = Claim({cluster!r}, 100, Path({str(tmp_path)!r}))\n"
        "print(claim.refused(), flush=True)\ninput()"
    )
    held = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert held.stdout is not None
    assert held.stdout.readline() == "None\n"
    mine = Claim(cluster, 100, tmp_path)
    assert mine.refused() is not None
    held.send_signal(signal.SIGKILL)
    held.communicate()
    assert mine.refused() is None
    mine.close()
