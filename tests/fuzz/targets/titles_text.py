"""Titles of rows as text."""

from pathlib import Path

import numpy as np

from fillrank.io.titles import read_titles

SUFFIX = ".csv"
LABELS = np.arange(12)


def seeds() -> list[bytes]:
    usual = b'id,title,year\n1,Toy Story,1995\n2,"Bug\'s Life, A",1998\n3,,\n7,Antz,1998\n'
    quoted = 'name;id\n"Amélie ""Poulain""";4\n"two\nlines";5\n\'burbs;6\n'.encode()
    return [usual, quoted, usual.replace(b",", b"\t"), usual.replace(b"\n", b"\r\n")]


def attempt(path: Path) -> None:
    titles = read_titles(path, LABELS)
    assert [*titles] == LABELS.tolist()
    assert all(titles.values())
