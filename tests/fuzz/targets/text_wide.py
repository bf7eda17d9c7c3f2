"""Wide tables as text."""

from pathlib import Path

import fillrank as fr
from fuzz.tables import wide_text

SUFFIX = ".csv"


def seeds() -> list[bytes]:
    decimal = b"id;x;y\na;1,5;2\nb;;0,25\nc;-3;1e3\n"
    quoted = b'name,"a, b","c ""d"""\n"two\nlines",1,NA\n' + "Zoë,2,3\n".encode()
    return [
        wide_text(),
        wide_text("\t", "NA"),
        wide_text("|", "?", header=False),
        wide_text(" ", "."),
        b"\xef\xbb\xbf" + wide_text(";", "null").replace(b"\n", b"\r\n"),
        decimal,
        quoted,
    ]


def attempt(path: Path) -> None:
    fr.read(path)
