"""Spreadsheets: the smallest .xlsx that is read, and one with its members damaged."""

import random
from pathlib import Path

import fillrank as fr
from fuzz.mutations import mutated
from fuzz.targets.npz_dense import archive, members

SUFFIX = ".xlsx"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def seeds() -> list[bytes]:
    rows = "".join(
        f'<row r="{i}"><c r="A{i}"><v>{i}</v></c><c r="B{i}"><v>{i / 2}</v></c></row>'
        for i in range(1, 6)
    )
    return [
        archive(
            {
                "[Content_Types].xml": f'<Types xmlns="{_TYPES}"/>'.encode(),
                "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="r1" '
                f'Type="{_LINKS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'.encode(),
                "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>'
                '<sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>'.encode(),
                "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship '
                f'Id="r1" Type="{_LINKS}/worksheet" Target="worksheets/sheet1.xml"/>'
                "</Relationships>".encode(),
                "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}'
                "</sheetData></worksheet>".encode(),
            }
        )
    ]


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Damage a member; the archive stays valid."""
    content = members(data)
    name = rng.choice(sorted(content))
    content[name] = mutated(rng, content[name], list(content.values()))
    return archive(content)


def attempt(path: Path) -> None:
    fr.read(path)
