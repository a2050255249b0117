"""Configuration files of the services: YAML to a pydantic model, paths relative to the file, every problem at once.

Used by the configurations of the reporter and of the service, which say what the keys are. Needs no numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from cluster_model.errors import ConfigurationError
from cluster_model.quantities import parse_duration, parse_rate, parse_size, parse_throttle
from goals.file_text import file_text
from goals.problems import to_problems
from goals.yaml_source import in_order, read_yaml

MAX_BYTES = 1_000_000
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
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


def _beside(value: str, info: ValidationInfo) -> str:
    """A path that does not depend on where the command is run. Documents without a folder of their own keep it as it is."""
    folder: Path | None = info.context
    return value if folder is None else str(folder / value)


def _file(value: str, info: ValidationInfo) -> str:
    found = _beside(value, info)
    if info.context is not None and not Path(found).is_file():
        raise ValueError(f"there is no file {found}")
    return found


def _folder(value: str, info: ValidationInfo) -> str:
    found = _beside(value, info)
    if info.context is not None and not Path(found).is_dir():
        raise ValueError(f"there is no folder {found}")
    return found


def _folder_to_be(value: str, info: ValidationInfo) -> str:
    found = _beside(value, info)
    if info.context is not None and Path(found).exists() and not Path(found).is_dir():
        raise ValueError(f"expected a folder, found a file at {found}")
    return found


def _topic_name(value: str) -> str:
    if TOPIC_NAME.fullmatch(value) is None:
        raise ValueError(f"expected letters, digits, dots, dashes and underscores, at most 249, found {value!r}")
    return value


def or_defaults(value: object) -> object:
    """A part that is named and has nothing under it takes its defaults."""
    return {} if value is None else value


def _quantity(parse: Callable[[Any], float]) -> BeforeValidator:
    return BeforeValidator(parse)


Seconds = Annotated[float, _quantity(parse_duration), AfterValidator(_above_zero)]
Bytes = Annotated[int, _quantity(parse_size), AfterValidator(_above_zero)]
BytesOrZero = Annotated[int, _quantity(parse_size)]
Throttle = Annotated[int | Literal["auto"], _quantity(lambda value: value if value == "auto" else parse_throttle(value))]
Rate = Annotated[float, _quantity(parse_rate), AfterValidator(_above_zero)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
TopicName = Annotated[str, AfterValidator(_topic_name)]
PathBeside = Annotated[str, AfterValidator(_beside)]
FilePath = Annotated[str, AfterValidator(_file)]
FolderPath = Annotated[str, AfterValidator(_folder)]
FolderToBe = Annotated[str, AfterValidator(_folder_to_be)]


class Part(BaseModel):
    """A mapping in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class KafkaPart(Part):
    bootstrap_servers: Annotated[str, BeforeValidator(_addresses)] = Field(description="HOST:PORT of the broker")
    command_config: FilePath | None = Field(default=None, description="properties file with TLS and SASL settings")


Config = TypeVar("Config", bound=BaseModel)


def read_config(
    path: Path,
    kind: type[Config],
    expected: str,
    disagreements: Callable[[Mapping[str, Any], Path], Iterable[Wrong]],
) -> Config:
    """What a YAML file says, its paths made absolute.

    Parameters
    ----------
    expected
        The top of such a file in words.
    disagreements
        What does not go together, told from the document as it was written, whatever else is wrong in it, and the folder of the file.

    Raises
    ------
    ConfigurationError
        It cannot be read, or anything in it is wrong: all problems at once, each with its place and line.
    """
    name = str(path)
    source = read_yaml(file_text(path, "a configuration file in YAML", MAX_BYTES), name)
    found = list(source.problems)
    if not isinstance(source.value, dict):
        what = "nothing" if source.value is None else type(source.value).__name__
        found.append(source.problem((), f"expected {expected}, found {what}"))
        raise ConfigurationError(name, in_order(found))
    folder, config = path.absolute().parent, None
    more = [source.problem(place, message) for place, message in disagreements(source.value, folder)]
    try:
        config = kind.model_validate(source.value, context=folder)
    except ValidationError as error:
        more += to_problems(source, error.errors(include_url=False), kind)
    known = {problem.place for _, problem in found}
    found += [f for f in more if f.problem.place not in known]
    if found or config is None:
        raise ConfigurationError(name, in_order(found))
    return config
