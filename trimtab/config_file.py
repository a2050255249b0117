"""Configuration files of the services: YAML to a pydantic model, paths relative to the file, every problem at once.

Used by the configurations of the reporter and of the service, which say what the keys are. Needs no numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_duration, parse_rate, parse_size
from goals.yaml_source import in_order, read_yaml
from trimtab.config_problems import to_problems

MAX_BYTES = 1_000_000
Wrong = tuple[tuple[str | int, ...], str]
"""A place in the file, and what is wrong there."""


def _above_zero(value: float) -> float:
    if value <= 0:
        raise ValueError("expected more than 0")
    return value


def _addresses(value: object) -> object:
    """``HOST:PORT`` with commas, of one text or a list of them."""
    given = value if isinstance(value, list) else [value]
    parts = [part.strip() for text in given if isinstance(text, str) for part in text.split(",")]
    for part in parts:
        host, _, port = part.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"expected HOST:PORT such as 127.0.0.1:9092, found {part!r}")
    if not parts or not all(isinstance(text, str) for text in given):
        raise ValueError(f"expected HOST:PORT such as 127.0.0.1:9092, found {value!r}")
    return ",".join(parts)


def or_defaults(value: object) -> object:
    """A part that is named and has nothing under it takes its defaults."""
    return {} if value is None else value


def _quantity(parse: Callable[[Any], float]) -> BeforeValidator:
    return BeforeValidator(parse)


Seconds = Annotated[float, _quantity(parse_duration), AfterValidator(_above_zero)]
Bytes = Annotated[int, _quantity(parse_size), AfterValidator(_above_zero)]
Rate = Annotated[float, _quantity(parse_rate), AfterValidator(_above_zero)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Part(BaseModel):
    """A mapping in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class KafkaPart(Part):
    bootstrap_servers: Annotated[str, BeforeValidator(_addresses)] = Field(description="HOST:PORT of the broker")
    command_config: str | None = Field(default=None, description="properties file with TLS and SASL settings")


Config = TypeVar("Config", bound=Part)


def read_config(
    path: Path,
    kind: type[Config],
    expected: str,
    rebased: Callable[[Config, Path], Config],
    disagreements: Callable[[Config], Iterable[Wrong]],
) -> Config:
    """What a YAML file says, its paths made absolute.

    Parameters
    ----------
    expected
        The top of such a file in words.
    rebased
        Makes paths absolute, given the folder of the file.
    disagreements
        What does not go together, or names what is not there.

    Raises
    ------
    ConfigurationError
        It cannot be read, or anything in it is wrong: all problems at once, each with its place and line.
    """
    name = str(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(name, [Problem("", f"cannot read it: {error.strerror or error}")]) from error
    if len(raw) > MAX_BYTES:
        raise ConfigurationError(name, [Problem("", f"expected a configuration file, found more than {MAX_BYTES} bytes")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(name, [Problem("", f"expected UTF-8, found byte {raw[error.start]:#04x}")]) from error
    source = read_yaml(text, name)
    found = list(source.problems)
    if not isinstance(source.value, dict):
        what = "nothing" if source.value is None else type(source.value).__name__
        found.append(source.problem((), f"expected {expected}, found {what}"))
        raise ConfigurationError(name, in_order(found))
    try:
        config = kind.model_validate(source.value)
    except ValidationError as error:
        known = {problem.place for _, problem in found}
        more = to_problems(kind, source, error.errors(include_url=False))
        raise ConfigurationError(name, in_order([*found, *(f for f in more if f.problem.place not in known)])) from None
    config = rebased(config, path.absolute().parent)
    found += [source.problem(place, message) for place, message in disagreements(config)]
    if found:
        raise ConfigurationError(name, in_order(found))
    return config
