"""Java key stores as PEM: JKS, and PKCS12 where the package `cryptography` is installed.

Used by `trimtab.capture.tls`. JKS is read here, because no maintained package does: its form is fixed since 1998, and its locked keys are
opened with SHA-1 as Java does it. Nothing is written, and no message repeats a password.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from cluster_model.extras import missing

JKS, JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
KEY, CERTIFICATE = 1, 2
WHITENER = b"Mighty Aphrodite"
SUN_PROTECTION = bytes.fromhex("2b060104012a02110101")  # 1.3.6.1.4.1.42.2.17.1.1
SHA1_BYTES = 20


class StoreError(Exception):
    """A store that cannot be read; the text says why and what to do."""


class MissingPackageError(StoreError):
    """A store that only a package reads which is not installed."""


@dataclass(frozen=True, slots=True)
class Store:
    """What a key store holds, in PEM.

    Attributes
    ----------
    trusted
        Certificates that stand alone.
    identity
        The first private key, unlocked, with its chain; empty where there is none.
    """

    trusted: str = ""
    identity: str = ""


def kind_of(content: bytes) -> str | None:
    """``JKS``, ``JCEKS`` or ``PKCS12`` by the first bytes; None for anything else."""
    if content.startswith(JKS):
        return "JKS"
    if content.startswith(JCEKS):
        return "JCEKS"
    return "PKCS12" if content[:1] == b"\x30" else None


def read_store(content: bytes, password: str | None, key_password: str | None) -> Store:
    """The certificates and the key of a store.

    Parameters
    ----------
    password
        Of the store. Without one a JKS file is read unchecked, as Java reads a trust store.
    key_password
        Of the key; that of the store where it has none of its own.

    Raises
    ------
    StoreError
        A wrong password, a broken file, or a form that is not read.
    """
    kind = kind_of(content)
    if kind == "JKS":
        return _read_jks(content, password, key_password or password)
    if kind == "PKCS12":
        return _read_pkcs12(content, password)
    raise StoreError(f"expected PEM, JKS or PKCS12, found {kind or 'something else'}")


def _read_pkcs12(content: bytes, password: str | None) -> Store:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError:
        raise MissingPackageError(f"PKCS12 needs {missing('cryptography')}") from None
    try:
        found = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise StoreError(f"wrong password, or a broken PKCS12 file ({error})") from None
    others = [entry.certificate.public_bytes(Encoding.PEM).decode() for entry in found.additional_certs]
    if found.key is None or found.cert is None:
        alone = [] if found.cert is None else [found.cert.certificate.public_bytes(Encoding.PEM).decode()]
        return Store("".join([*alone, *others]))
    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return Store("".join(others), key + found.cert.certificate.public_bytes(Encoding.PEM).decode() + "".join(others))


def _read_jks(content: bytes, password: str | None, key_password: str | None) -> Store:
    body, digest = content[:-SHA1_BYTES], content[-SHA1_BYTES:]
    secret = None if password is None else password.encode("utf-16-be")
    if secret is not None and hashlib.sha1(secret + WHITENER + body, usedforsecurity=False).digest() != digest:
        raise StoreError("wrong password, or a broken JKS file")
    trusted, identity = [], ""
    try:
        for locked, chain in _entries(body):
            if locked is None:
                trusted += chain
            elif not identity:
                identity = _pem_key(_unlocked(locked, key_password)) + "".join(chain)
    except (IndexError, ValueError) as error:
        raise StoreError(f"a broken JKS file ({error})") from None
    return Store("".join(trusted), identity)


def _entries(body: bytes) -> Iterator[tuple[bytes | None, list[str]]]:
    """The locked key of each entry, None where it is a certificate, and its certificates in PEM."""
    reader = _Reader(body, 4)
    version = reader.number(4)
    if version not in (1, 2):
        raise ValueError(f"version {version}")
    for _ in range(reader.number(4)):
        tag = reader.number(4)
        reader.counted(2)  # its alias
        reader.number(8)  # when it was added
        if tag == KEY:
            locked = reader.counted(4)
            yield locked, [_certificate(reader, version) for _ in range(reader.number(4))]
        elif tag == CERTIFICATE:
            yield None, [_certificate(reader, version)]
        else:
            raise ValueError(f"an entry of kind {tag}")


def _certificate(reader: _Reader, version: int) -> str:
    if version == 2:
        reader.counted(2)  # X.509
    return ssl.DER_cert_to_PEM_cert(reader.counted(4))


def _unlocked(locked: bytes, password: str | None) -> bytes:
    """PKCS8 of a key that Sun's protection locks: SHA-1 of password and salt, chained, over the key."""
    if password is None:
        raise StoreError("its key is locked; give ssl.keystore.password, and ssl.key.password where the key has its own")
    if SUN_PROTECTION not in locked[:40]:
        raise StoreError("its key is locked in a way that is not read; make it a PKCS12 store")
    secret = password.encode("utf-16-be")
    outer = _der(locked)
    data = _der(outer[len(_der_whole(outer)) :])  # behind the name of the method stands the locked key
    salt, hidden, check = data[:SHA1_BYTES], data[SHA1_BYTES:-SHA1_BYTES], data[-SHA1_BYTES:]
    plain, block = bytearray(), salt
    for start, end in pairwise([*range(0, len(hidden), SHA1_BYTES), len(hidden)]):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        plain += bytes(a ^ b for a, b in zip(hidden[start:end], block, strict=False))
    if hashlib.sha1(secret + bytes(plain), usedforsecurity=False).digest() != check:
        raise StoreError("wrong password of the key; give ssl.key.password")
    return bytes(plain)


def _pem_key(der: bytes) -> str:
    lines = textwrap.wrap(base64.b64encode(der).decode(), 64)
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""])


def _der(data: bytes) -> bytes:
    """What is inside the first element."""
    start, end = _der_bounds(data)
    return data[start:end]


def _der_whole(data: bytes) -> bytes:
    """The first element with its head."""
    return data[: _der_bounds(data)[1]]


def _der_bounds(data: bytes) -> tuple[int, int]:
    size, start = data[1], 2
    if size & 0x80:
        start = 2 + (size & 0x7F)
        size = int.from_bytes(data[2:start], "big")
    if start + size > len(data):
        raise ValueError("a key that is cut off")
    return start, start + size


class _Reader:
    """Big-endian numbers and counted bytes, one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def counted(self, size: int) -> bytes:
        """Bytes behind their count, which has `size` bytes."""
        return self._take(self.number(size))

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise ValueError("it is cut off")
        self._at += size
        return taken
