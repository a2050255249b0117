"""Decodes record values of the metadata log by their schemas.

Used by `fold` for the rarer types, by `trimtab metadata` and by tests. Tolerant where that is safe: tags that are
not known are skipped, as Kafka's own readers do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cluster_model.metadata.schemas import CONTROL_RECORDS, RECORDS, Field
from cluster_model.metadata.wire import MalformedError, Reader

FRAME_VERSION = 1
Fields = dict[str, Any]
"""Field name -> value: numbers, texts, None, lists, 16 bytes for an id, `Fields` for a structure."""


@dataclass(frozen=True, slots=True)
class Record:
    """One decoded record; `name` and `fields` are None for a type or version that is not known."""

    key: int
    version: int
    name: str | None
    fields: Fields | None


def decode_record(data: bytes, begin: int, end: int) -> Record:
    """The record whose value is ``data[begin:end]``.

    Raises
    ------
    MalformedError
        The bytes are not a record, or not what the schema of their type says.
    """
    reader = Reader(data, begin, end)
    frame = reader.uvarint()
    if frame != FRAME_VERSION:
        raise MalformedError(f"frame version {frame}, expected {FRAME_VERSION}")
    key, version = reader.uvarint(), reader.uvarint()
    schema = RECORDS.get(key)
    if schema is None or version > schema.newest:
        return Record(key, version, schema.name if schema is not None else None, None)
    fields = decode_fields(schema.fields, version, reader)
    reader.finish()
    return Record(key, version, schema.name, fields)


def decode_control(key: bytes, value: bytes) -> Record:
    """A control record; its type is in the key, and its version the first field of its value.

    Raises
    ------
    MalformedError
        As `decode_record`.
    """
    head = Reader(key, 0, len(key))
    head.int16()
    kind = head.int16()
    schema = CONTROL_RECORDS.get(kind)
    version = Reader(value, 0, len(value)).int16()
    if schema is None or not 0 <= version <= schema.newest:
        return Record(kind, version, schema.name if schema is not None else None, None)
    reader = Reader(value, 0, len(value))
    fields = decode_fields(schema.fields, version, reader)
    reader.finish()
    return Record(kind, version, schema.name, fields)


def decode_fields(fields: tuple[Field, ...], version: int, reader: Reader) -> Fields:
    """The fields of a structure in this version, and its tags."""
    plain, tagged, defaults = _layout(fields, version)
    values: Fields = dict(defaults)
    for name, read in plain:
        values[name] = read(reader)
    for _ in range(reader.uvarint()):
        tag, size = reader.uvarint(), reader.uvarint()
        entry = tagged.get(tag)
        if entry is None:
            reader.raw(size)
            continue
        begin = reader.at
        values[entry[0]] = entry[1](reader)
        if reader.at - begin != size:
            raise MalformedError(f"tag {tag} has {size} bytes, its value {reader.at - begin}")
    return values


Read = Callable[[Reader], Any]


@lru_cache(maxsize=256)
def _layout(
    fields: tuple[Field, ...], version: int
) -> tuple[tuple[tuple[str, Read], ...], Mapping[int, tuple[str, Read]], Fields]:
    """How to read a version: plain fields in order, fields by tag, and values of what is not written."""
    known = [f for f in fields if f.since <= version]
    plain = tuple((f.name, _reading(f, version)) for f in known if f.tag is None)
    tagged = {f.tag: (f.name, _reading(f, version)) for f in known if f.tag is not None}
    written = {name for name, _ in plain}
    defaults = {f.name: list(f.default) if f.array and f.default is not None else f.default for f in fields}
    return plain, tagged, {name: value for name, value in defaults.items() if name not in written}


_PLAIN: dict[str, Read] = {
    "bool": Reader.boolean, "int8": Reader.int8, "int16": Reader.int16, "uint16": Reader.uint16,
    "int32": Reader.int32, "int64": Reader.int64, "float64": Reader.float64, "uuid": Reader.uuid,
    "string": Reader.string, "bytes": Reader.bytes_,
}  # fmt: skip


def _reading(field: Field, version: int) -> Read:
    """How one field is read; null where it must not be is refused."""
    if field.kind == "struct":
        inner = field.fields
        one: Read = lambda reader: decode_fields(inner, version, reader)  # noqa: E731
    else:
        one = _PLAIN[field.kind]
    read: Read = (lambda reader: reader.array(one)) if field.array else one
    if field.nullable or not (field.array or field.kind in ("string", "bytes")):
        return read

    def required(reader: Reader) -> Any:
        value = read(reader)
        if value is None:
            raise MalformedError(f"{field.name} is null")
        return value

    return required
