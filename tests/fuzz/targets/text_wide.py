"""Wide tables as text."""

from pathlib import Path

import fillrank as fr
from fuzz.tables import wide_text

SUFFIX = ".csv"


def seeds() -> list[bytes]:
    decimal = b"id;x;y\na;1,5;2\nb;;0,25\nc;-3;1e3\n"
    quoted = b'name,"a, b","c ""d"""\n"two\nlines",1,NA\n' + "Zoë,2,3\n".encode()
    mixed = (
        b"town,who,lead,smoker,age,day,pct\nBern,Ana,<0.5,yes,18-25,2020-01-01,3%\n"
        b"Chur,Ben,0.7,no,26-40,2020-01-02,21%\nBern,Cid,> 10,no,18-25,,NA\n"
        b",Dan,1 to 2,,26-40,2020-01-01,5%\n"
    )
    return [
        mixed,
        mixed.replace(b",", b";").replace(b"0.7", b"0,7"),
        wide_text(),
        wide_text("\t", "NA"),
        wide_text("|", "?", header=False),
        wide_text(" ", "."),
        b"\xef\xbb\xbf" + wide_text(";", "null").replace(b"\n", b"\r\n"),
        decimal,
        quoted,
        b"sep=;\nResults of 2024\n\n" + decimal.replace(b"\n", b"\n;kg;cm\n", 1),
        b"Results,,\nSource: ours\n" + wide_text().replace(b"\n", b"\r\n"),
    ]


def attempt(path: Path) -> None:
    fr.read(path)
