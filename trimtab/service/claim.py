"""One instance for a node: what a process holds while it stands beside a controller, and what ends with it.

Made by `trimtab.service.reach`. Two instances with the same ``node_id`` would both take themselves for the active controller's and
decide at once. On one machine the kernel keeps them apart: by a name for the cluster and the node, and by a lock on the folder of the
metadata log, which also reaches from container to container. Nothing is written anywhere. Two machines are not told apart here; where
there is a metadata log, its ``meta.properties`` says whose it is (`trimtab.service.config`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import sys
from pathlib import Path

REMEDY = "so this one decides nothing: end one of the two"
LONGEST_NAME = 107  # bytes of an address of a local socket


class Claim:
    """The place of one instance; not held until `refused` is asked for the first time.

    Parameters
    ----------
    cluster_id
        Of the cluster.
    node_id
        The node that it stands beside; None where it is the only instance and decides always.
    kraft_log
        Folder of the metadata log that it reads, if it reads one.
    """

    def __init__(self, cluster_id: str, node_id: int | None, kraft_log: Path | None) -> None:
        self._cluster_id, self._node_id, self._kraft_log = cluster_id, node_id, kraft_log
        self._name: socket.socket | None = None
        self._folder: int | None = None

    def refused(self) -> str | None:
        """Take the place, or say in a sentence who has it. Asked again, it looks whether the other has ended."""
        if self._name is None and sys.platform == "linux":  # elsewhere no name ends with its process by itself
            place = "always" if self._node_id is None else f"node {self._node_id}"
            self._name = _named(f"trimtab/{self._cluster_id}/{place}")
            if self._name is None:
                if self._node_id is None:
                    return f"Another instance on this machine decides for this cluster already, {REMEDY}."
                return (
                    f"Another instance on this machine stands beside node {self._node_id} of this cluster already, {REMEDY}, or correct "
                    "its node_id."
                )
        if self._folder is None and self._kraft_log is not None:
            folder = _locked(self._kraft_log)
            if folder is None:
                return f"Another instance reads {self._kraft_log} already, {REMEDY}, or correct its node_id and kraft_log."
            self._folder = folder
        return None

    def close(self) -> None:
        """Leave the place to others."""
        name, self._name = self._name, None
        if name is not None:
            name.close()
        folder, self._folder = self._folder, None
        if folder is not None and folder >= 0:
            os.close(folder)


def _named(name: str) -> socket.socket | None:
    """A name that only one process of this machine has at a time; None where another has it."""
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        held.bind(b"\0" + name.encode()[: LONGEST_NAME - 1])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            held.close()
            return None  # any other error: this machine gives no names, and the socket stands for having asked
    return held


def _locked(folder: Path) -> int | None:
    """The folder, locked; None where another process has locked it, -1 where it cannot be locked."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1  # its reader says so
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(opened)
        return None if error.errno == errno.EWOULDBLOCK else -1
    return opened
