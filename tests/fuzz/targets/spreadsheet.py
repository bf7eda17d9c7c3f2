"""Spreadsheets: the smallest .xlsx and .ods that are read, and ones with their members damaged."""

import random
from pathlib import Path

import fillrank as fr
from fuzz.mutations import mutated
from fuzz.targets.npz_dense import archive, members
from helpers.spreadsheet_bytes import archive as archive_of_text
from helpers.spreadsheet_bytes import ods_cell, ods_members, ods_row, xlsx_members

SUFFIX = ".xlsx"  # the content decides how it is read


def seeds() -> list[bytes]:
    rows = "".join(
        f'<row r="{i}"><c r="A{i}"><v>{i}</v></c><c r="B{i}" t="s"><v>{i % 2}</v></c></row>'
        for i in range(1, 6)
    )
    repeated = 'table:number-columns-repeated="2"'
    lines = "".join(
        ods_row(ods_cell(i), ods_cell(i / 2, repeated), attributes='table:number-rows-repeated="1"')
        for i in range(1, 6)
    )
    files = (xlsx_members(rows, ["tea", "coffee"]), ods_members(lines))
    return [archive_of_text(each) for each in files]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Damage a member; the archive stays valid."""
    content = members(data)
    name = rng.choice(sorted(content))
    content[name] = mutated(rng, content[name], list(content.values()))
    return archive(content)


def attempt(path: Path) -> None:
    fr.read(path)
