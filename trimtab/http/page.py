"""The files of the page, read once, with their tags. The report's style sheet is the page's too, so that both look alike."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files

MEDIA = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """A file as it is answered."""

    body: bytes
    packed: bytes
    tag: str
    media: str


def asset(body: bytes, media: str) -> Asset:
    """A file with what is made from it once."""
    return Asset(body, gzip.compress(body, 9, mtime=0), f'"{hashlib.sha256(body).hexdigest()[:20]}"', media)


def assets() -> dict[str, Asset]:
    """Path -> file."""
    own = files("trimtab.http").joinpath("assets")
    found = {
        f"/assets/{f.name}": asset(f.read_bytes(), MEDIA[f.name.rpartition(".")[2]])
        for f in own.iterdir()
        if not f.name.startswith("_")
    }
    style = files("optimizer.report").joinpath("assets", "report.css")
    found["/assets/report.css"] = asset(style.read_bytes(), MEDIA["css"])
    found["/"] = found.pop("/assets/page.html")
    return found
