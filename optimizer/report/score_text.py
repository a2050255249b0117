"""Scores of many actions as JSON text at once: bytes written by a kernel, several million numbers in a large plan.

Called by `json_form` where there is a compiler. The text is what one action at a time gives; a number in another form than plain decimals
between 0.0001 and 1, or too near to a tie between two roundings, is left to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring_ascii as text_of

import numpy as np

from kernels.compiled import inner, kernel, whole

QUOTE, COMMA, COLON, ZERO, ONE, DOT, CLOSE = 34, 44, 58, 48, 49, 46, 125
OPENING, BETWEEN = b',"before":{', b'},"after":{'
NUMBER, BROKER, FRAME = 16, 32, 32  # bytes that a number takes at most, a broker with its number, what is around those of a goal
DIGITS = 10**9
NEAR_TIE = 1e-6
ELSEWHERE = -1  # this has to be written one by one


class ScoreTexts:
    """Writes the scores of actions, goals in a fixed order.

    Parameters
    ----------
    names
        Of the goals, by column.
    order
        Columns in the order of the text.
    """

    def __init__(self, names: Sequence[str], order: Sequence[int]) -> None:
        heads = [f'{"," if n else ""}{text_of(names[g])}:{{"score":'.encode() for n, g in enumerate(order)]
        self._order = np.array(order, np.int64)
        self._heads = np.frombuffer(b"".join(heads), np.uint8).copy()
        self._ends = np.cumsum([0, *map(len, heads)])
        self._around = [np.frombuffer(text, np.uint8).copy() for text in (OPENING, BETWEEN)]
        self._room = np.zeros(0, np.uint8)

    def written(
        self, score: np.ndarray, first: np.ndarray, broker: np.ndarray, before: np.ndarray, after: np.ndarray, judged: np.ndarray
    ) -> list[str | None]:
        """Text of each action, None where it has to be made one by one.

        `score` float64 [A, G]; `first` int64 [A + 1] indexes the touched brokers `broker` int64 [N], whose scores are `before` and
        `after` float64 [N, G]; `judged` bool [N, G] by the goal.
        """
        goals = len(self._order)
        most = len(score) * (len(self._heads) + goals * (NUMBER + FRAME)) + broker.size * goals * 2 * BROKER
        if len(self._room) < most:
            self._room = np.empty(most, np.uint8)
        ends = np.zeros(len(score), np.int64)
        opening, between = self._around
        write(
            self._room, ends, self._order, self._heads, self._ends, opening, between, score, first, broker, before, after, judged
        )
        text = self._room[: np.abs(ends[-1]) if len(ends) else 0].tobytes().decode("ascii")
        start, found = 0, []
        for end in ends.tolist():
            found.append(text[start:end] if end >= 0 else None)
            start = abs(end)
        return found


@kernel
def write(
    out: np.ndarray, ends: np.ndarray, order: np.ndarray, heads: np.ndarray, head_ends: np.ndarray, opening: np.ndarray,
    between: np.ndarray, score: np.ndarray, first: np.ndarray, broker: np.ndarray, before: np.ndarray, after: np.ndarray,
    judged: np.ndarray,
) -> None:  # fmt: skip
    """The texts one after the other into `out`; where each ends into `ends`, negative where it is not complete."""
    at = whole(0)
    for a in range(len(score)):
        good = True
        for n in range(len(order)):
            g = order[n]
            at = put(out, at, heads, head_ends[n], head_ends[n + 1])
            end = put_number(out, at, score[a, g])
            good = good and end != ELSEWHERE
            at = put(out, max(end, at), opening, whole(0), len(opening))
            end = put_brokers(out, at, first[a] - first[0], first[a + 1] - first[0], broker, before, judged, g)
            good = good and end != ELSEWHERE
            at = put(out, max(end, at), between, whole(0), len(between))
            end = put_brokers(out, at, first[a] - first[0], first[a + 1] - first[0], broker, after, judged, g)
            good = good and end != ELSEWHERE
            at = max(end, at)
            out[at], out[at + 1] = CLOSE, CLOSE
            at += 2
        ends[a] = at if good else -at


@inner
def put(out: np.ndarray, at: int, text: np.ndarray, start: int, stop: int) -> int:
    """Bytes of `text`; returns where they end."""
    for i in range(start, stop):
        out[at + i - start] = text[i]
    return at + stop - start


@inner
def put_brokers(
    out: np.ndarray, at: int, start: int, stop: int, broker: np.ndarray, scores: np.ndarray, judged: np.ndarray, g: int
) -> int:
    """Ids and scores of the brokers that goal `g` judges; returns where they end, or `ELSEWHERE`."""
    begun = False
    for i in range(start, stop):
        if not judged[i, g]:
            continue
        if begun:
            out[at] = COMMA
            at += 1
        begun = True
        out[at] = QUOTE
        at = put_digits(out, at + 1, broker[i], digits_of(broker[i]))
        out[at], out[at + 1] = QUOTE, COLON
        at = put_number(out, at + 2, scores[i, g])
        if at == ELSEWHERE:
            return ELSEWHERE
    return at


@inner
def digits_of(number: int) -> int:
    """Of a number of 0 or more."""
    digits = whole(1)
    while number >= 10:
        number //= 10
        digits += 1
    return int(digits)


@inner
def put_digits(out: np.ndarray, at: int, number: int, digits: int) -> int:
    """A number of 0 or more with so many digits; returns where they end."""
    for i in range(digits):
        out[at + digits - 1 - i] = ZERO + number % 10
        number //= 10
    return at + digits


@inner
def put_number(out: np.ndarray, at: int, value: float) -> int:
    """``%.9g`` of `value`; returns where it ends, or `ELSEWHERE`."""
    if value == 1.0:
        out[at] = ONE
        return at + 1
    if not 1e-4 <= value < 1.0:
        return ELSEWHERE
    zeros, scale = 0, 1e9
    if value < 1e-3:
        zeros, scale = 3, 1e12
    elif value < 1e-2:
        zeros, scale = 2, 1e11
    elif value < 1e-1:
        zeros, scale = 1, 1e10
    scaled = value * scale  # off by less than a ten millionth
    number = int(scaled)
    part = scaled - number
    if abs(part - 0.5) < NEAR_TIE:
        return ELSEWHERE
    if part > 0.5:
        number += 1
    if number == DIGITS:
        number //= 10
        zeros -= 1
        if zeros < 0:
            out[at] = ONE
            return at + 1
    digits = 9
    while number % 10 == 0:
        number //= 10
        digits -= 1
    out[at], out[at + 1] = ZERO, DOT
    for i in range(zeros):
        out[at + 2 + i] = ZERO
    return put_digits(out, at + 2 + zeros, number, digits)
