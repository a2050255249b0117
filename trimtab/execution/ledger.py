"""What is written down of executions: documents by key, kept by a journal on this machine and by a topic in the cluster.

The engine writes before it takes a step. One instance at a time may write: to `claim` is to make every later write of another instance
fail. Documents are JSON objects.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any, Protocol

from cluster_model.errors import ExternalError

Document = dict[str, Any]
Documents = dict[str, Document]
HEADER, WISH, PAUSE = "execution", "wish", "pause"
TASK, THROTTLE, DRAIN = "task/", "throttle/", "drain/"


def instance_name() -> str:
    """How this process is called in records: ``host process 123``."""
    return f"{socket.gethostname()} process {os.getpid()}"


class Fenced(ExternalError):
    """Another instance has claimed the executions of this cluster: this one takes no further step."""


class Ledger(Protocol):
    """Used by one thread. Calls raise `ExternalError` where nothing can be read or written."""

    def claim(self) -> None:
        """Be the one that may write from now on. Raises `ExternalError` where another one on this machine is at work."""
        ...

    def read(self) -> Documents:
        """All documents, with the wish that was written last."""
        ...

    def write(self, documents: Mapping[str, Document | None]) -> None:
        """Write these at once, all or none, and wait until they are safe; None removes. Raises `Fenced`."""
        ...

    def told(self) -> Documents:
        """What people told the cluster: `WISH` (what was asked last of the instance at work), `PAUSE`, and `DRAIN` of each broker."""
        ...

    def tell(self, key: str, document: Document) -> None:
        """Write one of these down for every instance; needs no claim. What ends one is written, too: nothing is ever removed."""
        ...

    def close(self) -> None: ...


class MemoryLedger:
    """Documents of one process, as for a simulated cluster. `shared` may be handed to another one, which then fences this."""

    def __init__(self, shared: MemoryDocuments | None = None) -> None:
        self.shared = shared if shared is not None else MemoryDocuments()
        self._epoch: int | None = None

    def claim(self) -> None:
        self.shared.epoch += 1
        self._epoch = self.shared.epoch

    def read(self) -> Documents:
        return dict(self.shared.documents)

    def write(self, documents: Mapping[str, Document | None]) -> None:
        if self._epoch != self.shared.epoch:
            raise Fenced("another instance carries out plans on this cluster now")
        _put(self.shared.documents, documents)

    def told(self) -> Documents:
        return told_of(self.shared.documents)

    def tell(self, key: str, document: Document) -> None:
        _put(self.shared.documents, {key: document})

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryDocuments:
    """What several `MemoryLedger` share."""

    def __init__(self) -> None:
        self.documents: Documents = {}
        self.epoch = 0


class JointLedger:
    """A journal and a shared record that hold the same.

    The journal is written first. What did not reach the shared record then is written there with the next write, so a cluster that is
    away for a while loses nothing. Where they differ at the start, the one with the higher revision is whole and holds.
    """

    def __init__(self, journal: Ledger, shared: Ledger) -> None:
        self._journal, self._shared = journal, shared
        self._missing_here: dict[str, Document | None] = {}
        self._missing_there: dict[str, Document | None] = {}

    def claim(self) -> None:
        self._journal.claim()
        self._shared.claim()

    def read(self) -> Documents:
        here, there = self._journal.read(), self._shared.read()
        if revision(there) >= revision(here):
            self._missing_here = _difference(there, here)
            return there
        self._missing_there = _difference(here, there)
        return here

    def write(self, documents: Mapping[str, Document | None]) -> None:
        self._missing_here |= documents
        self._journal.write(self._missing_here)
        self._missing_here = {}
        self._missing_there |= documents
        self._shared.write(self._missing_there)
        self._missing_there = {}

    def told(self) -> Documents:
        return self._shared.told()

    def tell(self, key: str, document: Document) -> None:
        self._shared.tell(key, document)

    def close(self) -> None:
        self._shared.close()
        self._journal.close()


def told_of(documents: Mapping[str, Document]) -> Documents:
    """Those that people write, and no instance for itself."""
    return {key: of for key, of in documents.items() if _is_told(key)}


def _is_told(key: str) -> bool:
    return key in (WISH, PAUSE) or key.startswith(DRAIN)


def revision(documents: Mapping[str, Document]) -> int:
    """How often the header was written; it only rises, also from one execution to the next."""
    return int(documents.get(HEADER, {}).get("revision", 0))


def _put(kept: Documents, documents: Mapping[str, Document | None]) -> None:
    for key, document in documents.items():
        if document is None:
            kept.pop(key, None)
        else:
            kept[key] = document


def _difference(newer: Documents, older: Documents) -> dict[str, Document | None]:
    """What brings `older` to `newer`; what people told stands in the shared record alone."""
    changed: dict[str, Document | None] = {k: v for k, v in newer.items() if older.get(k) != v and not _is_told(k)}
    return changed | {k: None for k in older if k not in newer and not _is_told(k)}
