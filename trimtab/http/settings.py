"""Where the HTTP interface listens, who may read and who may change; refused where that would not be safe.

Called by the reader of the service's configuration; a default stands here and nowhere else. docs/http.md describes the keys.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_duration
from trimtab.http.others import ClusterPart
from trimtab.secret_file import read_secret

LEAST_TOKEN = 16
PART = "http"  # of the configuration, for error messages
NO_TOKEN = "No token is configured, so nothing can be changed over HTTP."
TOKEN_FILE = (
    "Write a token into a file that only the service can read (openssl rand -hex 24 makes one), name it as token_file under http in "
    "the service's configuration, and restart it."
)


class HttpSettings(BaseModel):
    """The part `http` of the service's configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    host: str = Field(default="127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(default=8470, ge=0, le=65535, description="port to listen on; 0 takes any that is free")
    token_file: str | None = Field(default=None, description="file with the token that allows changes")
    read_token_file: str | None = Field(
        default=None, description="file with a second token that allows reading only, for Prometheus and the like"
    )
    token: SecretStr | None = Field(
        default=None, description="the token itself, from a program that embeds the service"
    )
    read: Literal["open", "token"] | None = Field(
        default=None,
        description="who may read; where not given: anyone on loopback, beyond it the token is asked for",
    )
    tls_certificate: str | None = Field(
        default=None, description="PEM file with the certificate and its chain"
    )
    tls_key: str | None = Field(default=None, description="PEM file with the certificate's key")
    plain_beyond_loopback: bool = Field(default=False, description="listen beyond loopback without TLS")
    names: list[str] = Field(
        default=[], description="names by which browsers reach it, beside localhost and IP addresses"
    )
    cluster: str | None = Field(default=None, min_length=1, max_length=80, description="what this cluster is called on the page")
    clusters: list[ClusterPart] = Field(default=[], max_length=30, description="other clusters that the page shows, read-only")
    clusters_patience: Annotated[float, BeforeValidator(parse_duration), Field(gt=0, le=60)] = Field(
        default=3.0, description="how long a service of another cluster may take over its answer"
    )
    patience: Annotated[float, BeforeValidator(parse_duration), Field(gt=0, le=600)] = Field(
        default=5.0, description="how long the service may take over an answer"
    )

    @model_validator(mode="after")
    def _together(self) -> HttpSettings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together: give both or neither")
        if self.token is not None and self.token_file is not None:
            raise ValueError("token and token_file are two ways to say the same: give one of them")
        return self

    def beside(self, folder: Path) -> HttpSettings:
        """The same with paths relative to `folder`, which is the configuration file's."""
        paths = {
            key: str(folder / value)
            for key in ("token_file", "read_token_file", "tls_certificate", "tls_key")
            if (value := getattr(self, key))
        }
        return self.model_copy(update={**paths, "clusters": [part.beside(folder) for part in self.clusters]})


@dataclass(frozen=True)
class Access:
    """Settings as they came out safe: what the server needs.

    Attributes
    ----------
    token
        Allows changes; None: there are none over HTTP.
    read_token
        Whether reading asks for a token too.
    reader
        Allows reading, and nothing else.
    names
        Host names that browsers may use, in lower case.
    """

    token: str | None
    read_token: bool
    reader: str | None
    names: frozenset[str]
    tls: bool


def access(settings: HttpSettings) -> Access:
    """Check the settings against files and addresses.

    Raises
    ------
    ConfigurationError
        A file cannot be read, the token is too short, or the address is beyond loopback without TLS or a token.
    """
    problems: list[Problem] = []
    token = _token(settings, problems)
    reader = None
    if settings.read_token_file is not None:
        reader = _sound("read_token_file", _of_file("read_token_file", settings.read_token_file, problems), problems)
        if reader is not None and reader == token:
            problems.append(_problem("read_token_file", "expected another token than that of token_file, which allows changes, too"))
    for number, part in enumerate(settings.clusters):
        problems += [_problem(f"clusters[{number}].{key}", fault) for key, fault in part.faults()]
    tls = _tls(settings, problems)
    local = _loopback(settings.host, problems)
    if not local:
        if not tls and not settings.plain_beyond_loopback:
            problems.append(
                _problem(
                    "host",
                    f"{settings.host} is beyond loopback, where tokens and answers could be read on the way: give tls_certificate and "
                    "tls_key, or plain_beyond_loopback: true where something in front encrypts",
                )
            )
        if token is None and reader is None and settings.read != "open":
            problems.append(
                _problem(
                    "host",
                    f"{settings.host} is beyond loopback, where reading asks for a token, and there is none: give token_file "
                    "or read_token_file, or read: open where everyone who reaches it may know topics and plans",
                )
            )
    if settings.read == "token" and token is None and reader is None:
        problems.append(_problem("read", "reading asks for a token and there is none: give token_file or read_token_file"))
    if problems:
        raise ConfigurationError(PART, problems)
    names = {"localhost", settings.host.lower(), *(name.lower().rstrip(".") for name in settings.names)}
    return Access(
        token, not local if settings.read is None else settings.read == "token", reader, frozenset(names), tls
    )


def _problem(key: str, message: str) -> Problem:
    return Problem(f"{PART}.{key}", message)


def _token(settings: HttpSettings, problems: list[Problem]) -> str | None:
    if settings.token_file is not None:
        return _sound("token_file", _of_file("token_file", settings.token_file, problems), problems)
    return _sound("token", None if settings.token is None else settings.token.get_secret_value(), problems)


def _of_file(key: str, path: str, problems: list[Problem]) -> str | None:
    """The token in a file that others of the machine cannot read."""
    try:
        return read_secret(path, "the token")
    except ValueError as error:
        problems.append(_problem(key, str(error)))
        return None


def _sound(key: str, text: str | None, problems: list[Problem]) -> str | None:
    """The token, where it cannot be guessed."""
    if text is None or (len(text) >= LEAST_TOKEN and all("!" <= sign <= "~" for sign in text)):
        return text
    problems.append(
        _problem(
            key,
            f"expected one word of at least {LEAST_TOKEN} ASCII characters, found {len(text)} characters"
            f"{' with others among them' if len(text) >= LEAST_TOKEN else ''}; make one with: openssl rand -hex 24",
        )
    )
    return None


def _tls(settings: HttpSettings, problems: list[Problem]) -> bool:
    """Whether it is asked for and its files are good."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = f"{settings.tls_certificate} and {settings.tls_key}"
        problems.append(
            _problem(
                "tls_certificate",
                f"expected a PEM certificate and its key without a password in {files}: {error}",
            )
        )
        return False
    return True


def _no_password() -> str:
    """Asked for by the TLS library where a key is encrypted; without this it would ask at the terminal."""
    return ""


def _loopback(host: str, problems: list[Problem]) -> bool:
    """Whether every address of `host` is on this machine only."""
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        problems.append(
            _problem(
                "host", f"expected an address of this machine such as 127.0.0.1, found {host!r}: {error}"
            )
        )
        return True
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found)
