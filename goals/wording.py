"""Words and numbers as people write them, wherever goal files are refused or changed."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was most likely meant to be, None where none is near."""
    by_plain = {name.lower().replace("-", "_"): name for name in known}
    matches = get_close_matches(word.lower().replace("-", "_").replace(" ", "_"), by_plain, n=1, cutoff=0.6)
    return by_plain[matches[0]] if matches else None


def meant_or_known(word: object, known: Iterable[str]) -> str:
    """``did you mean 'weight'?``, or all known words where none is near."""
    known = tuple(known)
    match = nearest(word, known) if isinstance(word, str) else None
    return f"did you mean {match!r}?" if match is not None else f"expected one of {', '.join(known)}"


def shown(value: object) -> str:
    """A value of a file as its reader knows it, cut to a line's worth."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        text = repr(value)
    except ValueError:  # a number with more digits than Python writes out
        return "a number without end"
    return text if len(text) <= 60 else f"{text[:57]}..."


def plain(value: float) -> str:
    """A number as people write it: no exponent, no needless zeros."""
    text = f"{Decimal(repr(value)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
