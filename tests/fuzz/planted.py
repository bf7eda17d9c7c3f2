"""A target with one defect of each kind, which the harness must find; the file selects it."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from fillrank.errors import ReadError

SUFFIX = ".txt"


def seeds() -> list[bytes]:
    return [b"fine"]


def attempt(path: Path) -> None:
    word = path.read_text()
    if word == "bad":
        raise ReadError("this is bad.")
    if word == "unexpected":
        raise ValueError("this is not documented.")
    if word == "panic":
        raise BaseException("as those of Rust are")
    if word == "dead":
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "asleep":
        time.sleep(3600)
    while word == "busy":
        pass
    if word == "large":
        np.ones(2**30)
