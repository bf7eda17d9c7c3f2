"""Titles of films, as MovieLens publishes them."""

from pathlib import Path

from fillrank.io.titles import parse_movielens

SUFFIX = ".dat"


def seeds() -> list[bytes]:
    new = "1::Toy Story (1995)::Animation|Comedy\n73::Misérables, Les (1995)::Drama\n".encode()
    old = b'267|unknown||||1|0\n543|Mis\xe9rables, Les (1995)|01-Jan-1995||x|0|0\n9|"Cats"|||||\n'
    return [new, old, old.replace(b"\n", b"\r\n")]


def attempt(path: Path) -> None:
    titles = parse_movielens(path.read_bytes(), path.name)
    assert all("\n" not in text for pair in titles.items() for text in pair)
