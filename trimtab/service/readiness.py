"""Whether enough is known to decide: metadata that is up to date, samples that cover the horizon, reporters that are heard.

Any thread may ask; nothing here waits or asks a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cluster_model.model import ClusterModel
from cluster_model.trust import spoken
from trimtab.service.coverage import Coverage
from trimtab.service.metadata import MetadataWatch
from trimtab.service.samples import SampleFeed

NAMED = 5
Kind = Literal["starting", "shared", "metadata", "history", "warming", "silent"]


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing can be decided now, in a sentence."""

    kind: Kind
    text: str


class Readiness:
    """Parameters: the share of the horizon that samples have to cover, and of serving brokers that have to be heard; why the history
    cannot be written, why the metadata and why the samples cannot be read at the moment, None where they can; who else has this
    instance's place, None where no instance has; how far the start is, None where it is over."""

    def __init__(
        self,
        metadata: MetadataWatch,
        feed: SampleFeed,
        model: ClusterModel,
        coverage: Coverage,
        *,
        covered: float,
        heard: float,
        unrecordable: Callable[[], str | None],
        hindrance: Callable[[], str | None],
        unread: Callable[[], str | None],
        shared: Callable[[], str | None],
        starting: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._metadata, self._feed, self._model, self._coverage = metadata, feed, model, coverage
        self._covered, self._heard = covered, heard
        self._unrecordable, self._hindrance, self._unread, self._shared = unrecordable, hindrance, unread, shared
        self._starting = starting

    def holds(self, now_ms: int) -> list[Hold]:
        """Everything that is in the way, the most basic first; while the service starts, only that."""
        starting = self._starting()
        if starting is not None:
            return [Hold("starting", starting)]
        if not self._metadata.loaded:
            why = self._metadata.held(now_ms) or self._hindrance()
            return [Hold("metadata", "The cluster's metadata is not loaded yet" + (f": {_ended(why)}" if why else "."))]
        shared = self._shared()
        found = [] if shared is None else [Hold("shared", shared)]
        held = self._metadata.held_back(now_ms)
        if held is not None:
            found.append(Hold("metadata", f"The metadata may be older than the cluster: {_ended(held)}"))
        unrecordable = self._unrecordable()
        if unrecordable is not None:
            text = f"Decisions cannot be recorded, so none is carried out: {_ended(unrecordable)}"
            found.append(Hold("history", text))
        silent, unread = self._silent(now_ms), self._unread()
        if unread is not None and (silent is not None or not self._feed.caught_up):
            found.append(Hold("silent", f"Samples cannot be read: {_ended(unread)}"))  # so it is unknown whether reporters speak
        elif silent is not None and self._feed.caught_up:
            found.append(silent)
        share, span_ms = self._coverage.share(now_ms), self._coverage.span_ms
        if not self._feed.caught_up:
            if unread is None:
                found.append(Hold("warming", "Warming up: what the internal topic already has is being read."))
        elif share < self._covered:
            have, need = share * span_ms, self._covered * span_ms
            text = f"Warming up: samples cover {spoken(round(have))} of the {spoken(round(need))} that are needed"
            found.append(Hold("warming", f"{text} (horizon {spoken(span_ms)})."))
        return found

    def _silent(self, now_ms: int) -> Hold | None:
        serving = self._metadata.serving
        voices = [v for v in self._model.voices(now_ms) if v.broker in serving]
        if not voices:
            return Hold("metadata", "No broker serves.")
        mute = [v for v in voices if v.voice in ("silent", "never")]
        if len(voices) - len(mute) >= self._heard * len(voices) and len(mute) < len(voices):
            return None
        if len(mute) == len(voices):
            ages = [v.age_ms for v in mute if v.age_ms is not None]
            since = f"for {spoken(min(ages))}" if ages else "yet"
            return Hold("silent", f"No reporter has been heard {since}: is `trimtab reporter` running beside the brokers?")
        ids = ", ".join(str(v.broker) for v in mute[:NAMED]) + (f" and {len(mute) - NAMED} more" if len(mute) > NAMED else "")
        return Hold("silent", f"Reporters of {len(mute)} of {len(voices)} serving brokers are not heard: {ids}.")


def _ended(text: str) -> str:
    """With a full stop, where it has no end of its own."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
