"""TLS settings of Kafka's own tools, as a Python TLS context.

Used by `trimtab.capture.client`. PEM as it is, Java's stores through `trimtab.capture.stores`; for one that cannot be read it says which
command converts it. Never connects.
"""

from __future__ import annotations

import os
import re
import shlex
import ssl
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from trimtab.capture.stores import MissingPackageError, StoreError, read_store

TLS_KEYS = {
    "ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password",
    "ssl.truststore.certificates", "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password",
    "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password",
    "ssl.endpoint.identification.algorithm", "ssl.protocol", "ssl.enabled.protocols",
}  # fmt: skip
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
Complain = Callable[[str, str], None]
"""Told the key and what is wrong with it."""


def tls_context(properties: Mapping[str, str], complain: Complain) -> ssl.SSLContext | None:
    """A context that trusts, identifies and checks as the properties say; None after a complaint.

    Without a trust store the system's certificate authorities are trusted, as Java trusts its own.
    """
    refused = False

    def refuse(key: str, why: str) -> None:
        nonlocal refused
        refused = True
        complain(key, why)

    trusted = _pem(properties, "truststore", "ssl.truststore.certificates", refuse)
    identity = _identity(properties, refuse)
    lowest, highest = _versions(properties, refuse)
    checked = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if checked not in ("https", ""):
        why = f"expected https, or nothing to switch the check off, found {checked!r}"
        refuse("ssl.endpoint.identification.algorithm", why)
    if refused:
        return None
    context = _built(trusted, identity, properties.get("ssl.key.password"), complain)
    if context is not None:
        context.check_hostname = checked == "https"
        context.minimum_version, context.maximum_version = lowest, highest
    return context


def _built(trusted: str | None, identity: str | None, password: str | None, complain: Complain) -> ssl.SSLContext | None:
    try:
        context = ssl.create_default_context(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        complain("ssl.truststore", f"expected certificates in PEM, found something unreadable: {_said(error)}")
        return None
    if identity is not None:
        try:
            _load_identity(context, identity, password)
        except (ssl.SSLError, ValueError) as error:
            why = "expected a private key and its chain in PEM, and ssl.key.password for a locked key"
            complain("ssl.keystore", f"{why}: {_said(error)}")
            return None
    return context


def _load_identity(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Load key and chain; Python takes them from a file only, so a private one lives for a moment."""
    handle, name = tempfile.mkstemp(prefix="trimtab-")  # readable by this user alone
    try:
        with os.fdopen(handle, "w") as file:
            file.write(pem)
        context.load_cert_chain(name, password=password or "")  # "": never ask a terminal
    finally:
        os.unlink(name)


def _said(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error) or type(error).__name__


def _identity(properties: Mapping[str, str], complain: Complain) -> str | None:
    """PEM text with the client's key and certificate chain, None where the client has none."""
    key, chain = properties.get("ssl.keystore.key"), properties.get("ssl.keystore.certificate.chain")
    if (key is None) != (chain is None):
        missing = "ssl.keystore.key" if key is None else "ssl.keystore.certificate.chain"
        complain(missing, "is missing; ssl.keystore.key and ssl.keystore.certificate.chain go together")
        return None
    if key is not None and chain is not None:
        return f"{_lines(key)}\n{_lines(chain)}\n"
    return _pem(properties, "keystore", None, complain)


def _pem(properties: Mapping[str, str], store: str, inline_key: str | None, complain: Complain) -> str | None:
    """PEM text of a store, from its file or the properties themselves; None where it is absent or refused."""
    kind = properties.get(f"ssl.{store}.type", "").strip().upper()
    if inline_key is not None and properties.get(inline_key):
        return _lines(properties[inline_key])
    location = properties.get(f"ssl.{store}.location", "").strip()
    if not location:
        return None
    place = f"ssl.{store}.location"
    try:
        content = Path(location).read_bytes()
    except OSError as error:
        complain(place, f"cannot read {location}: {error.strerror}")
        return None
    if b"-----BEGIN " in content and kind in ("", "PEM"):
        return content.decode("utf-8", errors="replace")
    convert = f"convert it with: {_conversion(store, location)} and set ssl.{store}.type=PEM"
    try:
        found = read_store(content, properties.get(f"ssl.{store}.password"), properties.get("ssl.key.password"))
    except MissingPackageError as error:
        complain(place, f"{location}: {error}; or {convert}")
        return None
    except StoreError as error:
        hint = "" if "password" in str(error) else f"; {convert}"
        complain(place, f"{location}: {error}{hint}")
        return None
    pem = found.trusted if store == "truststore" else found.identity
    if not pem:
        complain(place, f"{location}: expected {'certificates' if store == 'truststore' else 'a private key'}, found none in it")
    return pem or None


def _conversion(store: str, location: str) -> str:
    source = shlex.quote(location)
    if store == "truststore":
        return f"keytool -list -rfc -keystore {source} > truststore.pem"
    return (
        f"keytool -importkeystore -srckeystore {source} -destkeystore client.p12 -deststoretype PKCS12 && "
        "openssl pkcs12 -in client.p12 -nodes -out keystore.pem"
    )


def _versions(properties: Mapping[str, str], complain: Complain) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    """Lowest and highest version of TLS that the properties allow; at least 1.2."""
    names = [name.strip() for name in properties.get("ssl.enabled.protocols", "").split(",") if name.strip()]
    unknown = [name for name in names if name not in VERSIONS]
    if unknown:
        complain("ssl.enabled.protocols", f"expected {' and '.join(VERSIONS)}, found {', '.join(unknown)}")
    highest = properties.get("ssl.protocol", "TLSv1.3").strip()
    if highest not in (*VERSIONS, "TLS"):
        complain("ssl.protocol", f"expected {' or '.join(VERSIONS)}, found {highest!r}")
    allowed = sorted({VERSIONS[name] for name in names if name in VERSIONS} or set(VERSIONS.values()))
    top = min(allowed[-1], VERSIONS.get(highest, ssl.TLSVersion.TLSv1_3))
    if allowed[0] > top:
        complain("ssl.protocol", f"{highest} is below every version in ssl.enabled.protocols")
    return allowed[0], top


_BLOCK = re.compile(r"(-----BEGIN [^-]+-----)\s*([^-]*?)\s*(-----END [^-]+-----)")


def _lines(pem: str) -> str:
    """PEM given on one line of a properties file, with its line ends back."""
    return _BLOCK.sub(lambda m: "\n".join(["", m[1], *textwrap.wrap("".join(m[2].split()), 64), m[3], ""]), pem)
