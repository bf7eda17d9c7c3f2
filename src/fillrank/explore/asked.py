"""What a request asks: its path and fields, judged, as a question to the model."""

from http import HTTPStatus
from typing import Any, get_args

from fillrank.estimators.recommending import By
from fillrank.explore.answers import Answers, Order, Query, Shown, Side

_LONGEST = 500  # letters of a search


class RefusedError(Exception):
    """A request that gets no answer, with the status that says why."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def answer(answers: Answers, path: str, asked: dict[str, str]) -> dict[str, Any]:
    """The answer to a question, or RefusedError raised."""
    if path == "/api/about":
        return answers.about()
    if path not in ("/api/search", "/api/line", "/api/nearest", "/api/recommend"):
        raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here.")
    side: Side = _choice(asked, "side", get_args(Side))
    if path == "/api/search":
        return answers.search(side, asked.get("part", "")[:_LONGEST])
    n = len(answers.names[side].texts)
    at = _whole(asked, "at", n - 1)
    if path == "/api/nearest":
        return answers.nearest(side, at)
    if path == "/api/recommend":
        by: By = _choice(asked, "by", get_args(By))
        if side != "rows":
            raise RefusedError(HTTPStatus.NOT_FOUND, "recommendations are for rows.")
        return answers.recommend(at, by)
    order: Order = _choice(asked, "order", get_args(Order))
    shown: Shown = _choice(asked, "shown", get_args(Shown))
    return answers.line(side, at, Query(order, shown, _whole(asked, "start", 2**31)))


def _choice(asked: dict[str, str], name: str, allowed: tuple[str, ...]) -> Any:
    value = asked.get(name, allowed[0])
    if value not in allowed:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} must be one of {', '.join(allowed)}.")
    return value


def _whole(asked: dict[str, str], name: str, most: int) -> int:
    text = asked.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most):
        raise RefusedError(HTTPStatus.NOT_FOUND, f"{name} must be from 0 to {most}.")
    return int(text)
