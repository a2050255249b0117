"""Where data goes: stdout, or a file that is either complete or not there.

Used by commands. A file is written beside its final place and renamed, so that no reader ever sees half of it,
also after Ctrl-C or on a full disk.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

from cluster_model.errors import ConfigurationError, Problem

log = logging.getLogger("trimtab")
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def unwritable(option: str, path: Path | None) -> list[Problem]:
    """What keeps `path` from being written, told before the work starts rather than after it."""
    if path is None or str(path) == "-":
        return []
    if path == Path():
        return [Problem(option, "expected a file, found an empty name or the folder that this runs in; name a file")]
    if path.is_dir():
        return [Problem(option, f"expected a file, found the folder {path}; name a file in it")]
    parent = path.absolute().parent
    if not parent.is_dir():
        return [Problem(option, f"there is no folder {parent}; create it or name another")]
    if not os.access(path if path.exists() else parent, os.W_OK):
        return [Problem(option, f"no permission to write {path}; name another file")]
    return []


def require_writable(command: str, out: Path | None) -> None:
    """For commands with nothing else to check. Raises `ConfigurationError` where ``--out`` cannot be written."""
    problems = unwritable("--out", out)
    if problems:
        raise ConfigurationError(command, problems)


def overwritten(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> list[Problem]:
    """Outputs (option -> path) that are one of the inputs, or a file of one that is a folder, also through links."""
    return [
        Problem(option, f"expected a file of its own, found that of {given}; writing would destroy it, name another")
        for option, out in outputs.items()
        for given, path in inputs.items()
        if out is not None and path is not None and str(out) != "-" and _is_part(out, path)
    ]


def _is_part(out: Path, given: Path) -> bool:
    place, source = Path(os.path.realpath(out)), Path(os.path.realpath(given))
    part = place.parent == source and (place.suffix == ".parquet" or place.name == "meta.json")
    return place == source or part or (out.exists() and given.exists() and out.samefile(given))


def emit(text: str | Iterable[str], out: Path | None, form: str | None = None) -> None:
    """Write `text` to `out`, or to stdout where that is None or ``-``; whole, it ends with one newline then, in pieces it is as given.

    The story tells that a file was written, and in which `form` where there are several.
    """
    if isinstance(text, str):
        text = (text if text.endswith("\n") else text + "\n",)
    if out is None or str(out) == "-":
        with _named("stdout"):
            sys.stdout.writelines(text)
            sys.stdout.flush()
    else:
        write_file(out, text)
        log.info("wrote %s%s", out, f" ({form})" if form else "")


def write_file(path: Path, text: str | Iterable[str]) -> None:
    """Write a UTF-8 file at once, whole or from pieces: readers see the old content or all of the new one.

    Links are followed; what is no regular file (a pipe, a terminal) is written to, not replaced.
    """
    pieces = (text,) if isinstance(text, str) else text
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with _named(path), open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
        return
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        with _named(path):
            with open(temporary, "x", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                os.chmod(temporary, path.stat().st_mode & 0o7777)
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # where it could not be made either
            temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _named(place: Path | str) -> Iterator[None]:
    """Names the place that was asked for, never a file on the way there; where there was no room, says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL and error.filename is not None:
            raise OSError(error.errno, error.strerror, str(place)) from error
        if error.errno not in FULL:
            raise
        raise OSError(error.errno, f"{error.strerror}; make room there, or name another place", str(place)) from error


def unwritable_folders(option: str, directory: Path | None, folders: Sequence[str]) -> list[Problem]:
    """What keeps `write_folders` from writing `folders` into `directory`.

    One that has something in it is a problem: files of an older plan among the new would be carried out too.
    """
    if directory is None:
        return []
    place = directory.absolute()
    nearest = next(folder for folder in (place, *place.parents) if folder.exists())
    if not nearest.is_dir():
        return [Problem(option, f"expected a folder, found the file {nearest}; name another folder")]
    if not os.access(nearest, os.W_OK):
        return [Problem(option, f"no permission to write in {nearest}; name another folder")]
    taken = [directory / name for name in folders if (directory / name).exists()]
    return [
        Problem(option, f"{path} is not empty; move it away or name another folder")
        for path in taken
        if not path.is_dir() or any(path.iterdir())
    ]


def write_folders(directory: Path, files: Mapping[str, str]) -> None:
    """Write every ``FOLDER/FILE`` of `files` into `directory`; each folder is complete or not there."""
    directory.mkdir(parents=True, exist_ok=True)
    with _named(directory), TemporaryDirectory(prefix=".part-", dir=directory) as staging:
        for name, text in files.items():
            staged = Path(staging) / name
            staged.parent.mkdir(exist_ok=True)
            staged.write_text(text, encoding="utf-8")
        for folder in sorted(Path(staging).iterdir()):
            os.replace(folder, directory / folder.name)


@contextmanager
def nothing_else_on_stdout() -> Iterator[None]:
    """While this lasts, what is written to stdout is lost. scipy's solver HiGHS prints a line there for some programs, whatever its options
    say, and C keeps it in a buffer of its own until that is flushed: it would stand in the data of a command."""
    try:
        sys.stdout.flush()
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    except (OSError, ValueError, AttributeError):  # there is no stdout
        yield
        return
    try:
        _flush_c()
        os.dup2(nowhere, 1)
        yield
    finally:
        _flush_c()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _flush_c() -> None:
    with suppress(OSError, TypeError, AttributeError):  # where the C library is not to be had by that name
        ctypes.CDLL(None).fflush(None)
