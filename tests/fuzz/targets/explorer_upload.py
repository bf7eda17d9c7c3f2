"""Files that are uploaded to the explorer, as complete requests."""

import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

import fillrank as fr
from fillrank.errors import InputError
from fillrank.explore.requests import Handler
from fillrank.explore.server import Explorer
from fillrank.explore.views import ModelView
from fuzz.mutations import TOKENS, mutated
from fuzz.tables import FOODS, triplets
from fuzz.targets import text_long, text_wide

SUFFIX = ".csv"
_NAMES = ("table.csv", "tëa.TSV", "../a\\b/c.txt", "x.tar.dat", "two\r\nlines.data")


class _Socket:
    """A connection with a complete request, which stores the reply."""

    def __init__(self, request: bytes):
        self._request = io.BytesIO(request)
        self.reply = b""

    def makefile(self, mode: str, buffering: int) -> io.BytesIO:
        return self._request

    def sendall(self, data: bytes) -> None:
        self.reply += bytes(data)

    def settimeout(self, seconds: float) -> None:
        """Do nothing: there is no waiting."""


@cache
def _server() -> Explorer:
    rows, columns, values = triplets(30)
    names = np.array([f"p{i}" for i in rows], dtype=object)
    data = fr.Observations.from_triplets(names, np.array(FOODS, dtype=object)[columns], values)
    model = fr.GASR(n_sweeps=20, random_state=0, progress=False, n_threads=1).fit(data)
    server = Explorer(ModelView(model, "foods"))
    server.socket.close()
    return server


def seeds() -> list[bytes]:
    wide = [seed for seed in text_wide.seeds() if b"tea" in seed]
    return [*wide, text_long.seeds()[1]]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change a cell or a line."""
    return mutated(rng, data, [rng.choice(TOKENS)])


def attempt(path: Path) -> None:
    server, content = _server(), path.read_bytes()
    host = f"127.0.0.1:{server.server_port}"
    name = quote(_NAMES[len(content) % len(_NAMES)])
    head = (
        f"POST /api/fill?name={name} HTTP/1.1\r\nHost: {host}\r\n"
        f"Origin: http://{host}\r\nCookie: {server.cookie}={server.token}\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    connection: Any = _Socket(head.encode() + content)
    Handler(connection, ("127.0.0.1", 1), server)
    status_line, _, rest = connection.reply.partition(b"\r\n")
    status = int(status_line.split()[1])
    body = json.loads(rest.partition(b"\r\n\r\n")[2])
    if 400 <= status < 500:
        raise InputError(body["error"])
    if status != 200:
        raise RuntimeError(f"status {status}: {body}")
