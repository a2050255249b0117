"""A webhook: its settings, and one message sent to it as JSON with a `text`, as Slack and those like it take it.

The address is a secret: it is all that it takes to write to the channel. Nothing here says more of it than the host.
"""

from __future__ import annotations

import json
from email.message import Message
from pathlib import Path
from typing import IO, Annotated, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from trimtab import __version__
from trimtab.config_file import FilePath, Part, Seconds
from trimtab.secret_file import read_secret

SECRET = "the address of the webhook"
EXAMPLE = "https://hooks.example.org/services/T0/B0/SECRET"
EXAMPLE_PAGE = "https://trimtab.example.org/"
BUSY = (408, 425, 429)  # try again, as after 5xx

Event = Literal["waiting", "executed", "failed", "unwell", "well"]
EVENTS: tuple[Event, ...] = ("waiting", "executed", "failed", "unwell", "well")


def web_address(given: object, example: str) -> str:
    """`given` where it is an address such as `example`.

    Raises
    ------
    ValueError
        It is none; what is wrong is said without saying the address.
    """
    text = given.get_secret_value() if isinstance(given, SecretStr) else given
    try:
        good = isinstance(text, str) and all("!" <= sign <= "~" for sign in text) and _is_http(text)
    except ValueError:
        good = False
    if not good or not isinstance(text, str):
        raise ValueError(f"expected an address such as {example}, found something else")
    return text


def _is_http(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)


def _secret_address(given: object) -> SecretStr:
    return SecretStr(web_address(given, EXAMPLE))


def _page(given: object) -> object:
    return given if given is None else web_address(given, EXAMPLE_PAGE)


class NotifyPart(Part):
    """The part `notify` of the service's configuration."""

    url: Annotated[SecretStr, BeforeValidator(_secret_address)] | None = Field(default=None, description="address of the webhook")
    url_file: FilePath | None = Field(default=None, description="file with the address of the webhook")
    events: list[Event] = Field(default=list(EVENTS), min_length=1, description="what is told")
    after: Seconds = Field(default=60.0, description="how long the cluster has to be unwell, or well again, before that is told")
    timeout: Annotated[Seconds, Field(le=30)] = Field(default=10.0, description="how long the webhook may take over an answer")
    page: Annotated[str, BeforeValidator(_page)] | None = Field(
        default=None, description="address of the service's page, put under messages"
    )

    @model_validator(mode="after")
    def _one_address(self) -> NotifyPart:
        if (self.url is None) == (self.url_file is None):
            raise ValueError("expected url_file, or url, and not both: one of them says where messages go")
        return self

    def address(self) -> str:
        """Where messages go; a file is read again each time. Raises `ValueError` where it says nothing good."""
        if self.url is not None:
            return self.url.get_secret_value()
        assert self.url_file is not None
        return address_in(Path(self.url_file))


def address_in(path: Path) -> str:
    """The address of the webhook in a file.

    Raises
    ------
    ValueError
        It cannot be read, others may read it, or it has something else in it.
    """
    text = read_secret(str(path), SECRET)
    try:
        return web_address(text, EXAMPLE)
    except ValueError as error:
        raise ValueError(f"{error} in {path}") from None


class NotTaken(Exception):
    """A message was not taken, and why, without the address; `final`: nor would it be at the next attempt."""

    def __init__(self, why: str, *, final: bool) -> None:
        super().__init__(why)
        self.final = final


class _NoRedirect(HTTPRedirectHandler):
    """A webhook that sends us elsewhere is refused: where to was not configured."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str) -> None:
        return None


def post(address: str, text: str, timeout: float) -> None:
    """Send one message; waits for `timeout` seconds at each step of it at most.

    Raises
    ------
    NotTaken
        It was not answered with 2xx.
    """
    head = {"Content-Type": "application/json", "User-Agent": f"trimtab/{__version__}"}
    try:
        request = Request(address, json.dumps({"text": text}).encode(), head, method="POST")
        with build_opener(_NoRedirect).open(request, timeout=timeout):
            pass
    except HTTPError as error:
        error.close()
        raise NotTaken(f"HTTP {error.code}", final=error.code < 500 and error.code not in BUSY) from None
    except URLError as error:
        reason = error.reason
        raise NotTaken(str(reason) if isinstance(reason, OSError) else type(reason).__name__, final=False) from None
    except OSError as error:
        raise NotTaken(str(error) or type(error).__name__, final=False) from None
    except Exception as error:  # what it says may have the address in it
        raise NotTaken(type(error).__name__, final=True) from None
