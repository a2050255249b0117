"""Snapshot files: one read and one write for all three forms.

Called by every command that takes or gives a snapshot. What a snapshot may contain is known to
`cluster_model.build` and `cluster_model.parquet`; this module knows paths, compression and how to
replace a file so that no reader ever sees half of one.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cluster_model import refusals
from cluster_model.build import broker_documents, build_snapshot, collector_paused, head_document, partition_documents
from cluster_model.content import content_of
from cluster_model.errors import InputError, Problem
from cluster_model.json_source import BrokenJsonError, parse_json
from cluster_model.parquet import FOLDER_FILES, META, MISSING, read_folder, write_folder
from cluster_model.snapshot import Snapshot

FORMS = "a .json file, a .json.gz file, or a folder with " + ", ".join(FOLDER_FILES)
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


def read_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """The snapshot in a file or folder; what is there decides the form, not its name.

    Raises
    ------
    InputError
        Nothing is there, it cannot be read, or its content is refused; carries every problem.
    """
    where = Path(path)
    if where.is_dir():
        return _read_folder(where)
    document, twice = _read_json(where)
    with collector_paused():
        return _with(twice, str(path), lambda: build_snapshot(document, str(path)))


def write_snapshot(snapshot: Snapshot, path: str | os.PathLike[str]) -> None:
    """Writes a snapshot in the form of the path's ending: .json, .json.gz, anything else is a folder.

    A reader sees the old content or the new one, never a part. Equal snapshots give equal .json and
    .json.gz bytes.

    Raises
    ------
    InputError
        The path cannot be written, or is a folder that holds anything but a snapshot.
    """
    where = Path(path)
    target = Path(os.path.realpath(where))
    try:
        if where.name.endswith(".json"):
            with _replacing(target) as out:
                _write_json(snapshot, out)
        elif where.name.endswith(".json.gz"):
            with (
                _replacing(target) as out,
                gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=6, mtime=0) as packed,
            ):
                _write_json(snapshot, packed)
        else:
            _replace_folder(target, lambda folder: write_folder(snapshot, folder))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        advice = "name a path in a folder that exists and is yours"
        raise _refused(path, f"cannot be written ({reason}); {advice}") from None


def snapshot_json(snapshot: Snapshot) -> str:
    """The text of a snapshot file in JSON."""
    out = io.BytesIO()
    _write_json(snapshot, out)
    return out.getvalue().decode()


def _with(problems: list[Problem], name: str, read: Callable[[], Snapshot]) -> Snapshot:
    """What `read` gives, refused with its problems after those found before."""
    try:
        snapshot = read()
    except InputError as error:
        raise InputError(name, [*problems, *error.problems]) from None
    if problems:
        raise InputError(name, problems)
    return snapshot


def _refused(path: str | os.PathLike[str], message: str, place: str = "") -> InputError:
    return InputError(str(path), [Problem(place, message)])


# JSON


def _write_json(snapshot: Snapshot, out: BinaryIO | io.BytesIO | gzip.GzipFile) -> None:
    """One broker and one partition a line, so that differences and `grep` are of use."""
    encode = json.JSONEncoder(allow_nan=False).encode
    head = ",\n".join(f"{encode(key)}: {encode(value)}" for key, value in head_document(snapshot).items())
    out.write(f'{{{head},\n"brokers": ['.encode())
    _write_lines((encode(broker) for broker in broker_documents(snapshot)), out)
    out.write(b'\n],\n"partitions": [')
    with collector_paused():
        _write_lines((encode(partition) for partition in partition_documents(snapshot)), out)
    out.write(b"\n]}\n")


def _write_lines(rows: Iterator[str], out: BinaryIO | io.BytesIO | gzip.GzipFile) -> None:
    lines: list[str] = []
    separator = "\n"
    for row in rows:
        lines.append(row)
        if len(lines) == 4096:
            out.write((separator + ",\n".join(lines)).encode())
            lines.clear()
            separator = ",\n"
    if lines:
        out.write((separator + ",\n".join(lines)).encode())


def _read_json(path: Path, document: str | None = None, place: str = "") -> tuple[Any, list[Problem]]:
    """What a JSON file says, plain or compressed, and the keys written twice; `document` and `place` are where errors put it."""
    name = document or str(path)
    try:
        content = content_of(path)
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
    except FileNotFoundError:
        raise _refused(name, f"expected {FORMS}, found nothing at this path", place) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        broken = f"expected a gzip file, found a broken or truncated one ({error}); copy or capture it again"
        raise _refused(name, broken, place) from None
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _refused(name, f"cannot be read ({reason})", place) from None
    if content.startswith(_PARQUET):
        one = "expected the folder that holds the Parquet files, found one of them; name the folder"
        raise _refused(name, one, place)
    try:
        with collector_paused():
            return parse_json(content)
    except BrokenJsonError as error:
        raise _refused(name, str(error), place) from None


# Folders


def _read_folder(folder: Path) -> Snapshot:
    """All three files are looked at, also where one of them is missing or broken."""
    if not any((folder / name).exists() for name in FOLDER_FILES):
        raise InputError(str(folder), [Problem(name, MISSING) for name in FOLDER_FILES])
    problems: list[Problem] = []
    meta: Any = None
    try:
        meta, twice = _read_json(folder / META, document=str(folder), place=META)
        problems = [Problem(f"{META}: {p.place}", p.message) for p in twice]
        if not isinstance(meta, dict):
            problems.append(Problem(META, f"expected an object, found {refusals.found(meta)}"))
    except InputError as error:
        problems = list(error.problems) if (folder / META).exists() else [Problem(META, MISSING)]
    return _with(problems, str(folder), lambda: read_folder(folder, meta if isinstance(meta, dict) else None))


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the target's place when all went well."""
    partial = _beside(target)
    try:
        with partial.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _replace_folder(target: Path, fill: Callable[[Path], None]) -> None:
    """Fills a new folder and puts it in the target's place; the old one goes when the new one stands."""
    if target.exists():
        _check_replaceable(target)
    partial, aside = _beside(target), _beside(target)
    try:
        partial.mkdir()
        fill(partial)
        if target.exists():
            os.rename(target, aside)
        try:
            os.rename(partial, target)
        except BaseException:
            if aside.exists():
                os.rename(aside, target)
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def _check_replaceable(target: Path) -> None:
    if not target.is_dir():
        advice = "remove it, or end the name in .json or .json.gz"
        raise _refused(target, f"expected a snapshot folder or nothing at this path, found a file; {advice}")
    strange = sorted(entry.name for entry in target.iterdir() if entry.name not in FOLDER_FILES)
    if strange:
        listed = ", ".join(strange[:3]) + (", …" if len(strange) > 3 else "")
        message = f"expected a snapshot folder or nothing at this path, found a folder with {listed}"
        raise _refused(target, message + "; name another")


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
