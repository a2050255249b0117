"""The one family of errors a user of Trimtab can meet.

Every message says what was expected, what was found, where, and what to do. The command line prints
them without a traceback and maps them to exit codes; nothing here knows about the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cluster_model.content import name_of
from cluster_model.plain_text import one_line


class TrimtabError(Exception):
    """Base of all errors that are not bugs."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a document: `place` (such as ``goals[2].weight``) and `message`."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class DocumentError(TrimtabError):
    """A file (``-``: standard input) is not what it should be; carries every problem found, each with its place."""

    def __init__(self, document: str, problems: Iterable[Problem]) -> None:
        self.document = document
        self.problems = tuple(problems)
        lines = [f"  {one_line(str(p))}" for p in self.problems[:MAX_LISTED]]
        if len(self.problems) > MAX_LISTED:
            lines.append(f"  and {len(self.problems) - MAX_LISTED} more")
        count = len(self.problems)
        super().__init__(f"{one_line(name_of(document))}: {count} problem{'' if count == 1 else 's'}\n" + "\n".join(lines))


class InputError(DocumentError):
    """A snapshot, plan or other data file was refused."""


class ConfigurationError(DocumentError):
    """A file or option that a person wrote was refused."""


class ExternalError(TrimtabError):
    """A cluster or another system said no; `retriable` tells whether the same call may go through."""

    def __init__(self, message: str, *, retriable: bool = False) -> None:
        super().__init__(message)
        self.retriable = retriable


MAX_LISTED = 50
