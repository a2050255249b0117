"""Cuts processes off from the network: each runs in a network namespace of its own. While its link is down no packet arrives or leaves.

For a `KafkaCluster` whose controllers can be cut off from everything. `enter` puts this process into a namespace of its own first, so the
machine's network stays as it is; needs util-linux and iproute2, and Linux that lets this user make namespaces.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

BRIDGE, NETWORK = "islands", "10.213.0"  # within a namespace of our own
INSIDE = "TRIMTAB_ISLANDS"


def enter(module: str, arguments: Sequence[str]) -> str | None:
    """Run this module again in a network namespace of its own: returns None there, and here why that cannot be."""
    if INSIDE in os.environ:
        return None
    command = ["unshare", "--net", *(["--map-root-user"] if os.geteuid() else [])]
    bridge = f"ip link set lo up && ip link add {BRIDGE} type bridge && ip addr add {NETWORK}.1/24 dev {BRIDGE} && ip link set {BRIDGE} up"
    try:
        subprocess.run([*command, "sh", "-c", bridge], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        return "unshare is not installed"
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made here: {error.stderr.strip()}"
    again = [sys.executable, "-m", module, *arguments]
    return os.execvpe(command[0], [*command, "sh", "-c", f'{bridge} && exec "$@"', "sh", *again], os.environ | {INSIDE: "1"})


class Islands:
    """A namespace for each of some processes, by number from 2 to 254, joined by a bridge. A context manager."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._holders: dict[int, subprocess.Popen[bytes]] = {}
        for n in numbers:
            holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)  # ends with this process
            self._holders[n] = holder
            while os.readlink(f"/proc/{holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
                os.sched_yield()
            _ip("link", "add", f"out{n}", "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            _ip("link", "set", f"out{n}", "master", BRIDGE, "up")
            for words in ("link set lo up", f"addr add {self.address(n)}/24 dev eth0", "link set eth0 up"):
                subprocess.run([*self.within(n), "ip", *words.split()], check=True)

    def __enter__(self) -> Islands:
        return self

    def __exit__(self, *_: object) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.wait()

    def address(self, n: int) -> str:
        return f"{NETWORK}.{n}"

    def within(self, n: int) -> list[str]:
        """What runs a command there, in the same process."""
        return ["nsenter", f"--net=/proc/{self._holders[n].pid}/ns/net"]

    def cut(self, n: int) -> None:
        _ip("link", "set", f"out{n}", "down")

    def mend(self, n: int) -> None:
        _ip("link", "set", f"out{n}", "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
